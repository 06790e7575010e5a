import {
  type DType,
  type Device,
  type Tensor,
  cast,
  copy,
  full,
  fromTypedArray,
  mul,
  observeOps,
  scope,
  slice,
  squeeze,
  sum,
  transpose,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type FlashAttentionOptions, flashAttention, flashAttentionWithLse } from '../src/index.ts';
import { type Attention, expectAccurate, relativeError } from './attempt.ts';
import { type AttentionProblem, describeProblem, normals, storages, storedAs } from './problems.ts';

/** flashAttentionWithLse with a problem's settings. */
export const flash: Attention = (q, k, v, { causal, scale }) =>
  flashAttentionWithLse(q, k, v, { causal, ...(scale === undefined ? {} : { scale }) });

interface FlashCases {
  readonly problems: readonly AttentionProblem[];
  readonly dtypes: readonly DType[];
}

/** What flashAttention must hold on every device. */
export function describeFlash(open: () => Device, { problems, dtypes }: FlashCases): void {
  describe.each(dtypes)('in %s', (dtype) => {
    it.each(problems.map((problem) => [describeProblem(problem), problem] as const))(
      'is attention: %s',
      (_, problem) => expectAccurate(flash, problem, dtype, open()),
    );
  });

  it('fills its memory, whatever that held', () => {
    const device = open();
    scope(() => {
      const shape = [2, 2, 37, 24];
      const run = () => scope(() => everythingOf(device, shape, shape, { causal: true }));
      const first = run();
      // What is freed here is what the next run gets.
      scope(() => Array.from({ length: 8 }, () => full(shape, NaN, { device })));
      expect(run()).toEqual(first);
    });
  });

  it('writes nothing outside its outputs', () => {
    const device = open();
    scope(() => {
      // Three rows of queries, whose outputs fill blocks of memory to the last byte, next to blocks that are in use.
      const [shapeQ, shapeK] = [
        [1, 1, 3, 128],
        [1, 1, 600, 128],
      ];
      const neighbours = Array.from({ length: 64 }, () => full(shapeQ!, 7, { device }));
      neighbours.forEach((each, i) => i % 2 === 0 && each.dispose());
      everythingOf(device, shapeQ!, shapeK!, {});
      neighbours.forEach((each, i) => {
        if (i % 2 === 1) expect(each.toFlatArray().every((value) => value === 7)).toBe(true);
      });
    });
  });

  it('gives the same bits twice if it must be deterministic', () => {
    const run = () =>
      everythingOf(open(), [1, 4, 70, 16], [1, 2, 90, 16], { causal: true, deterministic: true });
    expect(run()).toEqual(run());
  });

  it.each([NaN, Infinity, -Infinity])('keeps a %s inside its head', (poison) => {
    const device = open();
    const [shapeQ, shapeK] = [
      [1, 4, 40, 16],
      [1, 2, 33, 16],
    ];
    const clean = everythingOf(device, shapeQ!, shapeK!, {});
    for (const operand of [0, 1, 2]) {
      const poisoned = everythingOf(device, shapeQ!, shapeK!, {}, { operand, poison });
      // The last head of q, or of k and v, which the last two heads of q share.
      const heads = operand === 0 ? 3 : 2;
      const ofOthers = (values: readonly number[], of: number) => values.slice(0, (values.length * of) / 4);
      for (const name of ['output', 'lse', 'gradQ'] as const)
        expect(ofOthers(poisoned[name], heads)).toEqual(ofOthers(clean[name], heads));
      for (const name of ['gradK', 'gradV'] as const)
        expect(ofOthers(poisoned[name], 2)).toEqual(ofOthers(clean[name], 2));
      expect(poisoned.output.every(Number.isFinite)).toBe(false);
    }
  });

  it.each([NaN, Infinity])('keeps a gradient of %s to the keys that its query sees', (poison) => {
    const device = open();
    scope(() => {
      const operand = (length: number, seed: number) =>
        storedAs('bhnd', normals(16 * length, seed), [1, 1, length, 16], 'float32', device).requiresGrad_();
      const [q, k, v] = [operand(20, 1), operand(19, 2), operand(19, 3)];
      const { output, lse } = flashAttentionWithLse(q, k, v, { causal: true });
      // The first query sees no key, the fifth one four.
      const numbers = Float32Array.from({ length: 20 }, (_, i) => (i === 0 || i === 4 ? poison : 1));
      lse.backward(fromTypedArray(numbers, [1, 1, 20], { device }));
      const isFinite = (x: Tensor, from: number, to: number) =>
        x
          .toFlatArray()
          .slice(16 * from, 16 * to)
          .every(Number.isFinite);
      expect([isFinite(q.grad!, 0, 4), isFinite(q.grad!, 4, 5), isFinite(q.grad!, 5, 20)]).toEqual([
        true,
        false,
        true,
      ]);
      expect([isFinite(k.grad!, 0, 4), isFinite(k.grad!, 4, 19)]).toEqual([false, true]);
      for (const x of [q, k, v]) x.grad = null;
      const rows = Float32Array.from({ length: 320 }, (_, i) => (i === 16 * 4 ? poison : 1));
      flashAttention(q, k, v, { causal: true }).backward(fromTypedArray(rows, output.shape, { device }));
      expect([isFinite(k.grad!, 0, 4), isFinite(k.grad!, 4, 19)]).toEqual([false, true]);
    });
  });

  it('gives zeros and a log-sum-exp of -∞ to queries that see no key', () => {
    const { output, lse, gradQ } = everythingOf(open(), [1, 1, 40, 16], [1, 1, 9, 16], { causal: true });
    expect(output.slice(0, 31 * 16)).toEqual(Array(31 * 16).fill(0));
    expect(gradQ.slice(0, 31 * 16)).toEqual(Array(31 * 16).fill(0));
    expect(lse.slice(0, 31)).toEqual(Array(31).fill(-Infinity));
    for (const values of [output.slice(31 * 16), lse.slice(31), gradQ.slice(31 * 16)])
      expect(values.every((value) => Number.isFinite(value))).toBe(true);
  });

  it('weighs float64 scores that float32 could not hold', () => {
    const device = open();
    scope(() => {
      const operand = (values: readonly number[]) =>
        fromTypedArray(Float64Array.from(values), [1, 1, values.length, 1], { device }).requiresGrad_();
      // Scores of -1e40, of -1e40 and of -2e40.
      const [q, k, v] = [operand([1e20]), operand([-1e20, -1e20, -2e20]), operand([1, 2, 3])];
      const { output, lse } = flashAttentionWithLse(q, k, v);
      sum(output).backward();
      expect(output.item()).toBe(1.5);
      expect(lse.item()).toBe(-1e40);
      expect(v.grad!.toFlatArray()).toEqual([0.5, 0.5, 0]);
    });
  });

  it.each([
    ['no keys', [2, 2, 5, 16], [2, 2, 0, 16]],
    ['no queries', [2, 2, 0, 16], [2, 2, 5, 16]],
    ['no batch', [0, 2, 5, 16], [0, 2, 5, 16]],
    ['no heads', [2, 0, 5, 16], [2, 0, 5, 16]],
  ])('takes %s', (_, shapeQ, shapeK) => {
    const all = everythingOf(open(), shapeQ, shapeK, { causal: true });
    expect(all.output.length).toBe(shapeQ.reduce((product, length) => product * length, 1));
    expect(all.lse.every((value) => value === -Infinity)).toBe(true);
    for (const name of ['output', 'gradQ', 'gradK', 'gradV'] as const)
      expect(all[name].every((value) => value === 0)).toBe(true);
  });

  it('is laid out in memory like v, and the gradients like their inputs', () => {
    const device = open();
    scope(() => {
      const make = (storage: 'bhnd' | 'bnhd') =>
        storedAs(storage, normals(2 * 3 * 20 * 16, 3), [2, 3, 20, 16], 'float32', device).requiresGrad_();
      const [q, k, v] = [make('bhnd'), make('bnhd'), make('bnhd')];
      const output = flashAttention(q, k, v);
      const merged = transpose(output, 1, 2);
      expect(merged.isContiguous).toBe(true);
      sum(mul(output, output)).backward();
      expect(q.grad!.isContiguous).toBe(true);
    });
  });

  it.each(storages)('has the gradients of gradients laid out %s', (storage) => {
    const device = open();
    scope(() => {
      const shape = [2, 3, 20, 16];
      const operand = (seed: number) =>
        storedAs('bhnd', normals(1920, seed), shape, 'float32', device).requiresGrad_();
      const leaves = [operand(1), operand(2), operand(3)] as const;
      // That of the log-sum-exp lies as the numbers of one of 16 columns do.
      const gradO = storedAs(storage, normals(1920, 4), shape, 'float32', device);
      const gradLse = squeeze(
        slice(storedAs(storage, normals(1920, 5), shape, 'float32', device), 3, 6, 7),
        3,
      );
      const gradients = (ofOutput: Tensor, ofLse: Tensor) => {
        for (const x of leaves) x.grad = null;
        flashAttention(...leaves, { causal: true, deterministic: true }).backward(ofOutput);
        flashAttentionWithLse(...leaves, { causal: true, deterministic: true }).lse.backward(ofLse);
        return leaves.map((x) => x.grad!.toFlatArray());
      };
      const dense = gradients(copy(gradO), copy(gradLse));
      gradients(gradO, gradLse).forEach((values, i) => {
        // Rows that are not aligned are summed in another order: 16 products each.
        expect(relativeError(values, dense[i]!)).toBeLessThanOrEqual(16 * 2 ** -24);
      });
    });
  });

  it('runs as one op', () => {
    scope(() => {
      const device = open();
      const [q, k, v] = [1, 2, 3].map((seed) =>
        storedAs('bhnd', normals(640, seed), [1, 2, 20, 16], 'float32', device),
      );
      const names: string[] = [];
      const stop = observeOps({ before: ({ name }) => void names.push(name) });
      flashAttention(q!, k!, v!);
      stop();
      expect(names).toEqual(['flashAttention']);
    });
  });
}

interface Everything {
  readonly output: number[];
  readonly lse: number[];
  readonly gradQ: number[];
  readonly gradK: number[];
  readonly gradV: number[];
}

/** Output and gradients for fixed operands, the last element of one of which may be another. */
function everythingOf(
  device: Device,
  shapeQ: readonly number[],
  shapeK: readonly number[],
  options: FlashAttentionOptions,
  replaced?: { operand: number; poison: number },
): Everything {
  return scope(() => {
    const leaves = [shapeQ, shapeK, shapeK].map((shape, i) => {
      const values = normals(
        shape.reduce((product, length) => product * length, 1),
        50 + i,
      );
      if (replaced?.operand === i) values[values.length - 1] = replaced.poison;
      return cast(fromTypedArray(values, shape), 'float32').to(device).requiresGrad_();
    });
    const [q, k, v] = leaves as [Tensor, Tensor, Tensor];
    const { output, lse } = flashAttentionWithLse(q, k, v, options);
    sum(mul(output, full(output.shape, 0.5, { device }))).backward();
    return {
      output: output.toFlatArray(),
      lse: lse.toFlatArray(),
      gradQ: q.grad!.toFlatArray(),
      gradK: k.grad!.toFlatArray(),
      gradV: v.grad!.toFlatArray(),
    };
  });
}
