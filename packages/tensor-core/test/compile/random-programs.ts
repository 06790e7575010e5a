import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { Device, Tensor } from '../../src/index.ts';
import { drawPrograms } from '../differential/differential.ts';
import type { Operand, Program } from '../differential/programs/program.ts';
import { makeBase, viewOf } from '../differential/programs/tensor-input.ts';
import { unitRoundoff } from '../op-cases/support/samples.ts';
import { listingOf } from '../differential/report.ts';
import { seedGradient } from '../differential/run-ours.ts';
import { type FuzzSettings, sayWhatWasDrawn } from './fuzz-settings.ts';
import { optionsOf } from './random-options.ts';

/** Filled by the host, at random or not at all; compile.test.ts covers those. */
const ofTheHost = new Set([
  'tensor',
  'fromTypedArray',
  'uniform',
  'randn',
  'truncatedNormal',
  'randint',
  'dropout',
  'empty',
  'toDevice',
]);

/** The tensors that a program starts from; an alias counts as the same. */
function basesOf({ inputs }: Program, device: Device): Tensor[] {
  const bases: Tensor[] = [];
  for (const input of inputs)
    bases.push(input.aliasOf === undefined ? makeBase(input, device) : bases[input.aliasOf]!);
  return bases;
}

interface Results {
  readonly results: readonly Tensor[];
  readonly root: Tensor | undefined;
}

function execute({ inputs, steps, mutates }: Program, bases: readonly Tensor[], device: Device): Results {
  const registers: Tensor[] = bases.map((base, i) => viewOf(base, inputs[i]!));
  let results: readonly Tensor[] = [];
  for (const step of steps) {
    const operands = step.operands.map((operand): Operand =>
      typeof operand === 'number' ? operand : registers[operand.register]!,
    );
    const result = step.ours(operands, device);
    results = result instanceof t.Tensor ? [result] : result;
    registers.push(...results);
  }
  const root = mutates
    ? undefined
    : results.find((result) => result.requiresGrad && t.isFloatingPoint(result.dtype));
  return { results, root };
}

/** Values of the results, of the bases and of their gradients. */
function told(results: readonly Tensor[], bases: readonly Tensor[]): unknown {
  // As numbers: a copy need not keep which NaN it is.
  const elements = (x: Tensor) => [x.dtype, x.shape, x.toFlatArray()];
  return {
    results: results.map(elements),
    bases: bases.map(elements),
    gradients: bases.map(({ grad }) => grad && elements(grad)),
  };
}

/** Back to what they were before the program ran. */
function restore(program: Program, bases: readonly Tensor[], device: Device): void {
  t.scope(() => {
    const fresh = basesOf(program, device);
    bases.forEach((base, i) => {
      t.noGrad(() => t.copyInPlace(base, fresh[i]!));
      base.grad?.dispose();
      base.grad = null;
    });
  });
}

/** In this many programs each pass finds something. */
const fewest = 40;

interface Found {
  /** Calls that were left out because an earlier one does the same. */
  readonly repeatedCalls: number;
  /** Losses joined with the gradients of their logits. */
  readonly jointLosses: number;
  /** Gradients of tables that are added where rows were looked up. */
  readonly addedTables: number;
}

function foundIn(programs: readonly t.CompileExplanation[]): Found {
  const count = (of: (program: t.CompileExplanation) => number) =>
    programs.reduce((sum, each) => sum + of(each), 0);
  const countOps = (name: RegExp) => count(({ table }) => table.filter(({ op }) => name.test(op)).length);
  return {
    repeatedCalls: count(({ repeatedCalls }) => repeatedCalls),
    jointLosses: countOps(/^fused_.*crossEntropyBackward/),
    addedTables: countOps(/^fused_embeddingBackward_add_/),
  };
}

type Outcome =
  | {
      readonly eager: unknown;
      readonly compiled: readonly unknown[];
      /** How often passes found what they look for. */
      readonly found: Found;
      /** Whether compiled code rounds less often than eager code or adds in another order, so that bits differ. */
      readonly roundsOnce: boolean;
    }
  | { readonly error: Error };

/** Whether numbers differ by no more than `roundings` times their size, or times 1. */
function areClose(a: unknown, b: unknown, roundings: number): boolean {
  if (typeof a === 'number' && typeof b === 'number')
    return Object.is(a, b) || Math.abs(a - b) <= roundings * Math.max(1, Math.abs(a), Math.abs(b));
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b);
  const [entries, others] = [Object.entries(a), b as Record<string, unknown>];
  return (
    entries.length === Object.keys(b).length &&
    entries.every(([key, value]) => areClose(value, others[key], roundings))
  );
}

/** Each step, and its gradient, may round once on either side where the other does not. */
function roundingsOf({ steps, inputs }: Program): number {
  const units = inputs.map(({ dtype }) => unitRoundoff[dtype] ?? 0);
  return 2 * 2 * steps.length * Math.max(...units);
}

function runBoth(program: Program, device: Device): Outcome {
  return t.scope(() => {
    const bases = basesOf(program, device);
    let seedTensor: Tensor | undefined;
    let eager: unknown;
    try {
      const { results, root } = execute(program, bases, device);
      if (root)
        seedTensor = t.fromTypedArray(seedGradient(root.dtype, root.size), root.shape, {
          dtype: root.dtype,
          device,
        });
      const again = execute(program, bases, device);
      root?.backward(seedTensor);
      again.root?.backward(seedTensor);
      eager = told([...results, ...again.results], bases);
    } catch (error) {
      return { error: error as Error };
    }
    const compiled = t.compile(
      (...given: Tensor[]) => {
        const { results, root } = execute(program, given, device);
        // Once more, so that calls repeat earlier ones and gradients are added to earlier ones.
        const again = execute(program, given, device);
        root?.backward(seedTensor);
        again.root?.backward(seedTensor);
        return [...results, ...again.results].map((result) => result.detach());
      },
      optionsOf(program, device),
    );
    const outcomes = [0, 1, 2].map(() => {
      restore(program, bases, device);
      return told(compiled(...bases), bases);
    });
    const explained = compiled.explain();
    const roundsOnce = explained.some(
      ({ accumulatedProducts, mergedProducts }) => accumulatedProducts + mergedProducts > 0,
    );
    compiled.dispose();
    return { eager, compiled: outcomes, found: foundIn(explained), roundsOnce };
  });
}

/** Of all ops, and more of those that passes look for by name. */
function* draw({ programs, seed }: FuzzSettings): Generator<Program> {
  yield* drawPrograms({ cases: programs, seed });
  yield* drawPrograms({ cases: programs / 4, seed: seed + programs, ops: ['crossEntropy', 'embedding'] });
}

/**
 * Draws programs of one op, and chains, on `device`: compiled, each gives the bits of the eager one, three consecutive times;
 * close numbers where products add to something in low precision.
 */
export function itCompilesRandomPrograms(device: () => Device, settings: FuzzSettings): void {
  const { seed, programs, minutes } = settings;
  it(`compiled, give the same bits as eager ones (seed ${seed}, ${programs} programs)`, () => {
    const end = performance.now() + minutes * 60_000;
    let [drawn, compared] = [0, 0];
    const found: Found[] = [];
    const failures: string[] = [];
    for (const program of draw(settings)) {
      if (performance.now() > end) break;
      drawn++;
      if (ofTheHost.has(program.name)) continue;
      const fail = (how: string) =>
        failures.push(
          [
            `${program.name}, seed ${program.seed}: ${how}`,
            ...listingOf(program),
            `again, among those of all ops: npm run fuzz -- --seed ${program.seed} --programs 1`,
          ].join('\n'),
        );
      try {
        const outcome = runBoth(program, device());
        if ('error' in outcome) continue;
        compared++;
        found.push(outcome.found);
        outcome.compiled.forEach((compiled, call) => {
          const agrees =
            outcome.roundsOnce && call > 0
              ? areClose(compiled, outcome.eager, roundingsOf(program))
              : isDeepStrictEqual(compiled, outcome.eager);
          if (!agrees) fail(`call ${call} differs`);
        });
      } catch (error) {
        fail((error as Error).message.slice(0, 200));
      }
    }
    sayWhatWasDrawn(settings, { 'programs of one op': drawn, compared, different: failures.length });
    expect(failures.join('\n\n')).toBe('');
    expect(compared).toBeGreaterThanOrEqual(Math.floor(drawn / 4));
    if (device().type === 'cpu' || programs < fewest) return;
    // On a GPU each pass has found something.
    for (const name of ['repeatedCalls', 'jointLosses', 'addedTables'] as const)
      expect([name, Math.max(...found.map((each) => each[name]))]).not.toEqual([name, 0]);
  });
}
