import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { collect, collectAndPoison, liveStorages } from './collect.ts';
import { devices } from './devices.ts';

/** The tensors that the program holds, by name. */
type Handles = Map<string, t.Tensor>;

interface Stage {
  readonly makes: string;
  readonly reads: readonly string[];
  readonly run: (...read: t.Tensor[]) => t.Tensor;
}

const numbers = (count: number, step: number) =>
  Array.from({ length: count }, (_, i) => Math.sin(1 + i * step));
const matrix = (rows: number, columns: number, step: number) =>
  Array.from({ length: rows }, (_, i) => numbers(columns, step + i));

/** A small training step, one op per stage, with views, broadcasting, casts and tensors that are read twice. */
const stages = (device: t.Device): readonly Stage[] => {
  const leaf = (rows: number, columns: number, step: number) => () =>
    t.tensor(matrix(rows, columns, step), { device, requiresGrad: true });
  return [
    { makes: 'w', reads: [], run: leaf(4, 4, 0.7) },
    { makes: 'v', reads: [], run: leaf(4, 2, 0.3) },
    { makes: 'x', reads: [], run: () => t.tensor(matrix(4, 4, 0.9), { device }) },
    { makes: 'h', reads: ['x', 'w'], run: (x, w) => t.matmul(x!, t.transpose(w!)) },
    { makes: 'row', reads: ['h'], run: (h) => t.slice(h!, 0, 1, 2) },
    { makes: 'a', reads: ['h', 'row'], run: (h, row) => t.mul(h!, row!) },
    { makes: 'same', reads: ['a'], run: (a) => t.reshape(a!, [4, 4]) },
    { makes: 's', reads: ['same'], run: (same) => t.softmax(same!) },
    { makes: 'y', reads: ['s', 'v'], run: (s, v) => t.matmul(s!, v!) },
    { makes: 'z', reads: ['y', 'a'], run: (y, a) => t.add(y!, t.slice(a!, 1, 0, 2)) },
    { makes: 'loss', reads: ['z'], run: (z) => t.mean(t.mul(z!, z!)) },
  ];
};

/** Runs the stages from `from` on. */
function run(handles: Handles, all: readonly Stage[], from = 0, to = all.length): void {
  for (const { makes, reads, run: make } of all.slice(from, to)) {
    handles.set(makes, make(...reads.map((name) => handles.get(name)!)));
  }
}

function gradients(handles: Handles): number[][] {
  handles.get('loss')!.backward();
  return ['w', 'v'].map((name) => [...(handles.get(name)!.grad!.toTypedArray() as Float32Array)]);
}

function expected(device: t.Device): number[][] {
  return t.scope(() => {
    const handles: Handles = new Map();
    run(handles, stages(device));
    return gradients(handles);
  });
}

/** What stages from `from` on, and reading the gradients, still need of the program's handles. */
function neededFrom(all: readonly Stage[], from: number): Set<string> {
  return new Set(['w', 'v', 'loss', ...all.slice(from).flatMap(({ reads }) => reads)]);
}

describe.each(devices)('a training step outside scopes, on %s', (_, device) => {
  const all = stages(device);

  it('keeps its values when the garbage is collected, and its memory reused, after every stage', async () => {
    await collect();
    const before = liveStorages(device);
    const reference = expected(device);
    await (async () => {
      const handles: Handles = new Map();
      for (let stage = 0; stage < all.length; stage++) {
        run(handles, all, stage, stage + 1);
        for (const name of handles.keys()) if (!neededFrom(all, stage + 1).has(name)) handles.delete(name);
        await collectAndPoison(device);
      }
      expect(gradients(handles)).toEqual(reference);
    })();
    await collect();
    expect(liveStorages(device)).toBe(before);
  });

  it.each(all.map(({ makes }, stage) => [makes, stage] as const))(
    'gives all memory back when everything is dropped after %s',
    async (_name, stage) => {
      await collect();
      const before = liveStorages(device);
      (() => run(new Map(), all, 0, stage + 1))();
      await collect();
      expect(liveStorages(device)).toBe(before);
    },
  );

  it.each(all.map(({ makes }, stage) => [makes, stage] as const))(
    'keeps its values when what is not read again is disposed after %s',
    async (_name, stage) => {
      await collect();
      const before = liveStorages(device);
      const reference = expected(device);
      const handles: Handles = new Map();
      run(handles, all, 0, stage + 1);
      for (const [name, tensor] of handles) {
        if (neededFrom(all, stage + 1).has(name)) continue;
        tensor.dispose();
        handles.delete(name);
      }
      await collectAndPoison(device);
      run(handles, all, stage + 1);
      expect(gradients(handles)).toEqual(reference);
      for (const tensor of handles.values()) tensor.dispose();
      handles.clear();
      await collect();
      expect(liveStorages(device)).toBe(before);
    },
  );

  it('gives all memory back after backward, also of a graph that is retained', async () => {
    await collect();
    const before = liveStorages(device);
    (() => {
      const handles: Handles = new Map();
      run(handles, all);
      handles.get('loss')!.backward(undefined, { retainGraph: true });
      handles.get('loss')!.backward();
    })();
    await collect();
    expect(liveStorages(device)).toBe(before);
  });
});

describe.each(devices)('a training step in a scope, on %s', (_, device) => {
  it('keeps its values when garbage is collected before every op, and frees all at once', async () => {
    await collect();
    const before = liveStorages(device);
    const reference = expected(device);
    const stop = t.observeOps({ before: () => globalThis.gc!() });
    try {
      expect(expected(device)).toEqual(reference);
    } finally {
      stop();
    }
    expect(liveStorages(device)).toBe(before);
  });

  it.each([...Array(18).keys()])('frees all when op %i throws', (failing) => {
    const before = liveStorages(device);
    let op = 0;
    const stop = t.observeOps({
      before: () => {
        if (op++ === failing) throw new Error('stop');
      },
    });
    try {
      expect(() => expected(device)).toThrow('stop');
    } finally {
      stop();
    }
    expect(liveStorages(device)).toBe(before);
  });
});
