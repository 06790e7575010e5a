import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openPlanningDevice } from '../../src/testing.ts';
import type { FuzzSettings } from './fuzz-settings.ts';
import { drawStep } from './random-steps/draw-step.ts';
import { shrinkStep } from './random-steps/shrink-step.ts';
import { type StepProgram, listingOf } from './random-steps/step-program.ts';
import type { Trainer } from './random-steps/world.ts';
import { failingPass, footprints, lostLiveCall } from './symbolic/check-passes.ts';
import { traceStep } from './symbolic/trace-step.ts';

/** Draws steps, and compares what each pass makes of them to the original, in symbols: no kernel runs. */
export function itLeavesWhatRandomStepsLeave(
  { seed, programs, minutes, leftOut }: FuzzSettings,
  trainers: readonly Trainer[] = [],
): void {
  it(`each pass leaves what steps leave, and calls that are live (seed ${seed}, ${programs} programs)`, () => {
    const end = performance.now() + minutes * 60_000;
    const device = openPlanningDevice();
    const { facts } = device;
    const failureOf = (step: StepProgram): string | null =>
      t.scope(() => {
        const program = traceStep(step, device, trainers);
        if (!program) return null;
        compared++;
        const properties = { ...facts, l2Bytes: smallL2Bytes };
        const failure = failingPass(program, properties);
        // Once for each call, which is slow.
        if (failure !== null || step.seed % 10 > 0) return failure;
        return lostLiveCall(program, properties);
      });
    let [drawn, compared] = [0, 0];
    const failures: string[] = [];
    for (; drawn < programs && performance.now() < end && failures.length === 0; drawn++) {
      const step = drawStep(seed + drawn, { leftOut, trainers, isSymbolic: true });
      if (failureOf(step) === null) continue;
      const smallest = shrinkStep(step, (smaller) => failureOf(smaller) !== null);
      failures.push(`${failureOf(smallest)}\n${listingOf(smallest)}`);
    }
    expect(failures.join('\n\n')).toBe('');
    expect(compared).toBeGreaterThanOrEqual(Math.floor(drawn / 2));
  });
}

/** What each pass leaves of fixed programs, all together; see `footprints`. */
export function footprintsOfRandomSteps(programs: number, trainers: readonly Trainer[] = []) {
  const device = openPlanningDevice();
  const sums: Record<string, number[]> = {};
  for (let seed = 1; seed <= programs; seed++) {
    t.scope(() => {
      const step = drawStep(seed, { leftOut: new Set(), trainers, isSymbolic: true });
      const program = traceStep(step, device, trainers);
      if (!program) return;
      for (const [pass, footprint] of Object.entries(
        footprints(program, { ...device.facts, l2Bytes: smallL2Bytes }),
      ))
        sums[pass] = footprint.map((value, i) => value + (sums[pass]?.[i] ?? 0));
    });
  }
  return sums;
}

/** As of a GPU that a small program's gradients fill, so that each is updated early. */
const smallL2Bytes = 64;
