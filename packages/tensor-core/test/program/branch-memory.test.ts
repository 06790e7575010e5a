import { describe, expect, it, vi } from 'vitest';
import * as t from '../../src/index.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../src/testing.ts';

const assigned = vi.hoisted(() => ({ ofCalls: [] as number[] }));

vi.mock('../../src/devices/cuda/program/branches/assign-branches.ts', () => ({
  // Nothing is left alone for longer than its calls are there: what runs meanwhile must wait.
  assignBranches: (calls: readonly unknown[]) => ({
    ofCalls: assigned.ofCalls,
    doneBy: calls.map((_, i) => i),
  }),
}));

/** Leaves what it is given as it is, by way of memory that it fills first. */
const throughWorkspace = t.defineOp({
  name: 'throughWorkspace',
  autocast: 'none',
  infer: ([x]) => [x!],
  mutates: [0],
  cuda: {
    kind: 'custom',
    launch(context, [x]) {
      const address = context.workspace(x!.byteLength);
      context.fillBytes(address, 0, x!.byteLength);
      context.copy(x!, { ...x!, address });
      context.copy({ ...x!, address }, x!);
    },
  },
  cpu: { kind: 'onnx', build: (graph, [x]) => [graph.node('Identity', [x!])] },
});

const seeds = Array.from({ length: 6 }, (_, i) => i + 1);
const rows = 256;

/** What `fn` gives of rows of numbers, eagerly and, in graphs that run in orders of several seeds, compiled. */
function compare(ofCalls: number[], fn: (x: t.Tensor) => readonly t.Tensor[]): void {
  assigned.ofCalls = ofCalls;
  for (const seed of seeds) {
    const device = openEmulatedDevice(2 ** 26, undefined, undefined, seed);
    const x = t.tensor(
      Array.from({ length: rows }, (_, i) => i),
      { device },
    );
    const expected = fn(x).map((y) => y.toFlatArray());
    const compiled = t.compile(fn, { branches: 2 });
    for (let run = 0; run < 5; run++) expect(compiled(x).map((y) => y.toFlatArray())).toEqual(expected);
    const [{ table }] = compiled.explain() as [t.ProgramExplanation];
    expect(table.map(({ branch }) => branch)).toEqual(ofCalls);
    compiled.dispose();
  }
}

describe.skipIf(hostCompilerVersion() === null)('memory that calls of two branches use', () => {
  it('is a workspace only behind those that have read there', () => {
    const fn = (x: t.Tensor) => {
      const y = t.softmax(x, 0);
      const z = t.softmax(t.cumsum(x, 0), 0);
      t.applyOne(throughWorkspace, [y], undefined);
      return [y, z];
    };
    compare([1, 0, 0, 1], fn);
    compare([0, 1, 1, 0], fn);
  });

  it('is written only behind those that had a workspace there', () => {
    const fn = (x: t.Tensor) => {
      const y = t.softmax(x, 0);
      t.applyOne(throughWorkspace, [y], undefined);
      return [y, t.softmax(t.cumsum(x, 0), 0)];
    };
    compare([0, 0, 1, 1], fn);
    compare([1, 1, 0, 0], fn);
  });

  it('is handed on only behind those that have read there', () => {
    const fn = (x: t.Tensor) => [t.sum(t.cumsum(x, 0)), t.sum(t.softmax(x, 0))];
    compare([0, 0, 1, 1], fn);
    compare([1, 1, 0, 0], fn);
  });
});
