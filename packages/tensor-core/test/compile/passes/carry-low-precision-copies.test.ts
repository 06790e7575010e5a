import { makeExecutable } from '../../../src/compile/make-executable.ts';
import { describe, expect, it } from 'vitest';
import { type Op, type Tensor, copyInPlace, costOf, noGrad, slice, tensor } from '../../../src/index.ts';
import { castOp } from '../../../src/op/autocast/cast-op.ts';
import { carryLowPrecisionCopies } from '../../../src/compile/passes/carry-low-precision-copies.ts';
import { PerRunAttributes } from '../../../src/compile/executable/per-run-attributes.ts';
import type { Binding } from '../../../src/compile/executable/executable.ts';
import type { Call, Operand, Graph } from '../../../src/compile/graph/graph.ts';
import { byteSize, type DType } from '../../../src/base/dtype.ts';
import { Storage } from '../../../src/tensor/storage/storage.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { halve, lowProduct } from '../lowered-ops.ts';

const device = openEmulatedDevice();

/** Two elements of a graph's storage, or more. */
function at(storage: number, start: number, dtype: DType, size = 2): Operand {
  const layout = { shape: [size], strides: [1], offset: start, isContiguous: true };
  return { ...layout, storage, dtype, size, byteLength: size * byteSize(dtype) };
}

const call = (op: Op<never>, inputs: Operand[], outputs: Operand[]): Call => ({
  ...{ op, inputs, outputs, attributes: undefined, live: null, range: null },
});
const cast = (parameter: Operand, output: Operand): Call => ({
  ...call(castOp as Op<never>, [parameter], [output]),
  attributes: { dtype: output.dtype },
});
const product = (a: Operand, b: Operand, output: Operand) => call(lowProduct as Op<never>, [a, b], [output]);
const update = (parameter: Operand) => call(halve as Op<never>, [parameter], [parameter]);

const weights = tensor([1, 2, 3, 4], { device });
// As compilation ensures before a graph goes to its device.
weights.storage.watch();
const halves = [0, 2].map((start) => slice(weights, 0, start, start + 2).requiresGrad_());
const [p, q] = [at(0, 0, 'float32'), at(0, 2, 'float32')];

/** Storage 0 holds `weights`; the graph makes the following ones, 16 bytes each, and the last of them is the result. */
function graphOf(calls: readonly Call[], made = 4): Graph {
  return {
    ...{ name: 'step', device, gradients: new Map(), written: new Set([0]) },
    ...{ tracedCalls: calls.length, eagerPeakBytes: 0, calls },
    kept: new Set([made]),
    storages: [
      { byteLength: 16, dtype: 'float32', source: { kind: 'captured', storage: weights.storage } },
      ...Array.from(
        { length: made },
        () => ({ byteLength: 16, dtype: 'bfloat16', source: { kind: 'made' } }) as const,
      ),
    ],
  };
}

const low = (storage: number, start: number, size?: number) => at(storage, start, 'bfloat16', size);
const kinds = ({ storages }: Graph) => storages.map(({ source }) => source.kind);
const names = ({ calls }: Graph) => calls.map(({ op }) => op.name);

describe('carryLowPrecisionCopies', () => {
  it('has an update write the copy, and count its bytes', () => {
    const { calls, storages } = carryLowPrecisionCopies(graphOf([cast(p, low(1, 0)), update(p)]));
    expect(calls.map(({ op, outputs }) => [op.name, outputs])).toEqual([['halve', [p, low(1, 0)]]]);
    const { op, inputs, outputs } = calls[0]!;
    expect(costOf(op, inputs, outputs, undefined as never)).toEqual({ flops: 0, bytesMoved: 8 + 8 + 4 });
    expect(storages[1]!.source).toMatchObject({ kind: 'copy', casts: [{ inputs: [p] }], repeated: [] });
  });

  it('carries adjacent parameters, and finds them there when one is cast by itself', () => {
    const graph = carryLowPrecisionCopies(
      graphOf([
        cast(q, low(1, 0)),
        product(low(1, 0), low(1, 0), low(4, 0)),
        ...[cast(p, low(2, 1)), cast(q, low(2, 3))],
        product(low(2, 1, 4), low(2, 1, 4), low(4, 2, 4)),
        ...[cast(p, low(3, 0)), cast(q, low(3, 2))],
        product(low(3, 0, 4), low(3, 1), low(4, 0)),
        ...[update(q), update(p)],
      ]),
    );
    expect(kinds(graph)).toEqual(['captured', 'made', 'copy', 'made', 'made']);
    expect(names(graph)).toEqual(['lowProduct', 'lowProduct', 'lowProduct', 'halve', 'halve']);
    expect(graph.calls.map(({ inputs }) => inputs)).toEqual([
      [low(2, 3), low(2, 3)],
      [low(2, 1, 4), low(2, 1, 4)],
      [low(2, 1, 4), low(2, 2)],
      ...[[q], [p]],
    ]);
    expect(graph.calls.slice(3).map(({ outputs }) => outputs[1])).toEqual([low(2, 3), low(2, 1)]);
  });

  it('leaves casts to another arrangement of the same parameters, and to a part that is written twice', () => {
    const calls = [
      ...[cast(p, low(1, 0)), cast(q, low(1, 2))],
      ...[cast(q, low(2, 0)), cast(p, low(2, 2))],
      ...[cast(p, low(3, 0)), cast(q, low(3, 1))],
      product(low(1, 0, 4), low(2, 0, 4), low(4, 0, 4)),
      product(low(1, 0, 2), low(3, 0, 2), low(4, 0, 2)),
    ];
    const graph = carryLowPrecisionCopies(graphOf(calls));
    expect(kinds(graph)).toEqual(['captured', 'copy', 'made', 'made', 'made']);
    expect(names(graph)).toEqual(['cast', 'cast', 'cast', 'cast', 'lowProduct', 'lowProduct']);
  });

  it('leaves both where the update comes before a reader of one', () => {
    const calls = [
      ...[cast(p, low(1, 0)), cast(q, low(1, 2))],
      update(q),
      product(low(1, 0), low(1, 0), low(4, 0)),
    ];
    expect(carryLowPrecisionCopies(graphOf(calls)).calls).toEqual(calls);
  });

  it.skipIf(hostCompilerVersion() === null)('is right in runs of adjacent parameters', () => {
    const graph = graphOf([
      ...[cast(p, low(1, 0)), cast(q, low(1, 2)), cast(q, low(2, 0))],
      product(low(1, 0, 4), low(1, 0, 4), low(4, 0, 4)),
      product(low(2, 0), low(2, 0), low(4, 4)),
      ...[update(p), update(q)],
    ]);
    const executable = makeExecutable(graph);
    const run = () => {
      const before = weights.toFlatArray() as number[];
      const given = new Map<number, Binding>([[0, { storage: weights.storage, byteOffset: 0 }]]);
      const [result] = [...executable.run(given, new PerRunAttributes([])).values()] as [Storage];
      for (const start of [0, 8]) weights.storage.noteWrite({ start, end: start + 8 });
      executable.writesNoted!();
      const bytes = new Uint16Array(8);
      device.read(result.buffer as never, 0, new Uint8Array(bytes.buffer));
      result.release();
      const squares = before.map((x) => x * x);
      const seen = Array.from(
        bytes.subarray(0, 6),
        (bits) => new Float32Array(Uint32Array.of(bits << 16).buffer)[0],
      );
      expect(seen).toEqual([...squares, ...squares.slice(2)]);
      expect(weights.toFlatArray()).toEqual(before.map((x) => x / 2));
    };
    for (let i = 0; i < 3; i++) run();
    noGrad(() => copyInPlace(halves[1] as Tensor, tensor([16, 8], { device })));
    for (let i = 0; i < 2; i++) run();
    expect(executable.facts()).toMatchObject({ carriedCasts: 3, carriedBytes: 3 * 12 - 8 });
    executable.dispose();
  });
});
