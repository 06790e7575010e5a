import { expect, it } from 'vitest';
import type { Device } from '../../src/index.ts';
import { type FuzzSettings, sayWhatWasDrawn } from './fuzz-settings.ts';
import { compareStep } from './random-steps/compare-step.ts';
import { drawStep } from './random-steps/draw-step.ts';
import { shrinkStep } from './random-steps/shrink-step.ts';
import { type StepProgram, listingOf } from './random-steps/step-program.ts';
import type { Trainer } from './random-steps/world.ts';

/** No more programs are looked for, and made smaller, than these. */
const mostFailures = 5;

function again({ seed }: StepProgram): string {
  return `again: npm run fuzz -- --seed ${seed} --programs 1`;
}

/** Draws steps on `open`'s device: compiled, each gives and leaves the bits of the eager one, five consecutive times. */
export function itCompilesRandomSteps(
  open: () => Device,
  settings: FuzzSettings,
  trainers: readonly Trainer[] = [],
): void {
  const { seed, programs, minutes, leftOut } = settings;
  it(`steps of several ops leave what eager ones leave (seed ${seed}, ${programs} programs)`, () => {
    const end = performance.now() + minutes * 60_000;
    const device = open();
    const failures: string[] = [];
    let [drawn, same, rounded] = [0, 0, 0];
    for (; drawn < programs && performance.now() < end && failures.length < mostFailures; drawn++) {
      const program = drawStep(seed + drawn, { leftOut, trainers });
      const outcome = compareStep(program, device, trainers);
      if (outcome.kind === 'same') same++;
      if (outcome.kind === 'rounds') rounded++;
      if (outcome.kind === 'breaks') {
        // No program after it would run, nor would a smaller one.
        failures.push([outcome.message, listingOf(program), again(program)].join('\n'));
        break;
      }
      if (outcome.kind !== 'differs') continue;
      const fails = (smaller: typeof program) => compareStep(smaller, device, trainers).kind === 'differs';
      const smallest = shrinkStep(program, fails);
      failures.push(
        [compareStep(smallest, device, trainers).message, listingOf(smallest), again(program)].join('\n'),
      );
    }
    sayWhatWasDrawn(settings, { steps: drawn, same, rounded, different: failures.length });
    expect(failures.join('\n\n')).toBe('');
    expect(same).toBeGreaterThanOrEqual(Math.floor(drawn / 2));
    expect(rounded).toBeLessThanOrEqual(1 + drawn / 100);
  });
}
