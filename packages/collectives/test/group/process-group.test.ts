import {
  AutogradError,
  DTypeError,
  DeviceError,
  DisposedError,
  RooflineError,
  ShapeError,
  type Tensor,
  cast,
  compile,
  device,
  empty,
  expand,
  mul,
  noGrad,
  ones,
  scope,
  select,
  slice,
  transpose,
  view,
  zeros,
} from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { describe, expect, it } from 'vitest';
import { CollectiveError } from '../../src/errors.ts';
import type { ProcessGroup } from '../../src/group/process-group.ts';
import { observeWorks } from '../../src/group/work.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

describe('what reaches a backend', () => {
  it('a contiguous tensor in place, a slice by its address', () => {
    const backend = new InstantBackend();
    const x = ones([4, 3]);
    groupOn(backend)
      .allReduce(slice(x, 0, 1, 3))
      .wait();
    expect(backend.calls).toEqual([
      {
        kind: 'allReduce',
        dtype: 'float32',
        reduction: 'sum',
        root: 0,
        input: x.address + 12,
        output: x.address + 12,
        count: 6,
        description: 'allReduce(sum) float32 [2, 3]',
        buffers: [x.storage.buffer],
        isCompared: false,
        onCurrentStream: false,
      },
    ]);
  });

  it("the root's tensor of a broadcast as what is written, to others", () => {
    const backend = new InstantBackend();
    const x = ones([4]);
    for (const root of [0, 1]) groupOn(backend).broadcast(x, root).wait();
    expect(backend.calls.map(({ root, output }) => [root, output])).toEqual([
      [0, x.address],
      [1, x.address],
    ]);
  });

  it('a view as a copy that is copied back when it is done, and not before', () => {
    const backend = new InstantBackend(null);
    const base = zeros([2, 3]);
    const work = groupOn(backend).broadcast(transpose(base, 0, 1), 1);
    const { output } = backend.calls[0]!;
    expect(output).not.toBe(base.address);
    expect(work.isDone).toBe(false);
    work.wait();
    expect(work.isDone).toBe(true);
  });

  it('pieces are counted by rank', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend, 1);
    group.allGather(zeros([2, 5]), ones([5]));
    group.reduceScatter(zeros([5]), ones([10]), { op: 'average' });
    group.allToAll(zeros([4, 5]), ones([4, 5]));
    group.gather(null, ones([5]), 0);
    group.scatter(zeros([5]), null, 0);
    group.send(ones([5]), 0);
    group.barrier();
    expect(
      backend.calls.map(({ kind, count, input, output, root }) => [kind, count, input > 0, output > 0, root]),
    ).toEqual([
      ['allGather', 5, true, true, 0],
      ['reduceScatter', 5, true, true, 0],
      ['allToAll', 10, true, true, 0],
      ['gather', 5, true, false, 0],
      ['scatter', 5, false, true, 0],
      ['send', 5, true, false, 0],
      ['barrier', 0, false, false, 0],
    ]);
  });

  it('both sides of a send and receive describe it alike', () => {
    const backend = new InstantBackend();
    groupOn(backend).send(ones([2]), 1);
    groupOn(backend, 1).recv(zeros([2]), 0);
    expect(new Set(backend.calls.map(({ description }) => description))).toEqual(
      new Set(['send and recv float32 [2]']),
    );
  });

  it('a description stays short, and differs with any dimension', () => {
    const backend = new InstantBackend();
    const shapes = [2, 3].map((last) => [...Array<number>(100).fill(1), last]);
    for (const shape of shapes) groupOn(backend).allReduce(ones(shape));
    const texts = backend.calls.map(({ description }) => description);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(256);
    expect(texts[0]).not.toBe(texts[1]);
  });
});

describe('works say when their data moved', () => {
  const ran = { startMs: 2, endMs: 5 };

  it('where the backend knows, once they are done', () => {
    const backend = new InstantBackend(null);
    const work = groupOn(backend).allReduce(ones([2]));
    expect(work.ran).toBeNull();
    backend.settle({ status: 'done', ran });
    expect(work.ran).toEqual(ran);
    expect(groupOn(new InstantBackend()).allReduce(ones([2])).ran).toBeNull();
  });

  it('and are observed as long as one asks to', () => {
    const group = groupOn(new InstantBackend());
    const seen: string[] = [];
    const ignore = observeWorks(({ op }) => seen.push(op));
    group.allReduce(ones([2]));
    group.barrier();
    ignore();
    ignore();
    group.allReduce(ones([2]));
    expect(seen).toEqual(['allReduce', 'barrier']);
  });
});

it('a context is part of what ranks compare, and has the call compared', () => {
  const backend = new InstantBackend();
  const group = groupOn(backend);
  group.allReduce(ones([2]), { context: 'step 3' });
  group.reduce(ones([2]), 1, { op: 'max', context: 'last' });
  group.allReduce(ones([2]));
  expect(backend.calls.map(({ description, isCompared }) => [description, isCompared])).toEqual([
    ['allReduce(sum, step 3) float32 [2]', true],
    ['reduce(max, root 1, last) float32 [2]', true],
    ['allReduce(sum) float32 [2]', false],
  ]);
  expect(() => group.allReduce(ones([2]), { context: '' })).toThrow(/the context is a text/);
});

describe('is refused', () => {
  const group = groupOn(new InstantBackend());
  const base = zeros([4, 3]);
  it.each([
    [
      'a bool',
      () => group.allReduce(cast(ones([2]), 'bool')),
      DTypeError,
      /allReduce: takes float32.*not bool/,
    ],
    [
      'an average of integers',
      () => group.allReduce(ones([2], { dtype: 'int32' }), { op: 'average' }),
      DTypeError,
      /cast/,
    ],
    [
      'an output of another shape',
      () => group.allReduce(ones([2]), { output: ones([3]) }),
      ShapeError,
      /\[2\] and \[3\]/,
    ],
    [
      'one of another dtype',
      () => group.allReduce(ones([2]), { output: ones([2], { dtype: 'float64' }) }),
      DTypeError,
      /float64/,
    ],
    ['an expanded target', () => group.allReduce(expand(ones([1]), [4])), ShapeError, /expand\(\)/],
    [
      'a leaf that requires a gradient',
      () => group.allReduce(ones([2]).requiresGrad_()),
      AutogradError,
      /noGrad/,
    ],
    [
      'a wrong number of pieces',
      () => group.allGather(zeros([3, 5]), ones([5])),
      ShapeError,
      /\[2, 5\] or \[10\]/,
    ],
    [
      'pieces that do not divide',
      () => group.allToAll(zeros([3]), ones([3])),
      ShapeError,
      /multiple of the group's size 2/,
    ],
    ['an output that overlaps', () => group.allToAll(base, base), ShapeError, /shares memory/],
    [
      'a piece that is another rank’s',
      () => group.allGather(base, slice(base, 0, 2, 4)),
      ShapeError,
      /not as this rank's piece/,
    ],
    [
      'no output on the root',
      () => group.gather(null, ones([2]), 0),
      ShapeError,
      /is the root and needs the output/,
    ],
    [
      'an input elsewhere',
      () => group.scatter(zeros([2]), ones([2, 2]), 1),
      ShapeError,
      /only the root, rank 1/,
    ],
    [
      'an output that reaches into the input beyond as many bytes as it has',
      () => group.allReduce(slice(view(base, [12]), 0, 6, 10), { output: select(base, 1, 0) }),
      ShapeError,
      /shares memory/,
    ],
    [
      "a tensor of a device that is not the group's",
      () =>
        groupOn(Object.assign(new InstantBackend(), { device: openPlanningDevice() })).allReduce(ones([2])),
      DeviceError,
      /this group works on .*, not on cpu/,
    ],
    ['sending to oneself', () => group.send(ones([2]), 0), CollectiveError, /itself/],
    ['a rank that is none', () => group.broadcast(ones([2]), 2), RooflineError, /0 to 1, not 2/],
  ])('%s', (_, call, type, message) => {
    expect(call).toThrow(type);
    expect(call).toThrow(message);
  });

  it('a disposed tensor', () => {
    const x = ones([2]);
    x.dispose();
    expect(() => group.allReduce(x)).toThrow(DisposedError);
  });

  it.each<[string, (group: ProcessGroup, x: Tensor) => unknown]>([
    ['send', (group, x) => group.send(transpose(x, 0, 1), 1).wait()],
    ['gather', (group, x) => group.gather(zeros([4, 2]), x, 0)],
    ['barrier', (group) => group.barrier().wait()],
  ])('%s in a compiled function, whose replays would not call it', (op, use) => {
    const backend = new InstantBackend();
    const live = device('cpu').memoryStatistics().liveStorages;
    const f = compile((x: Tensor) => {
      use(groupOn(backend), x);
      return mul(x, 2);
    });
    const message = `compile: ${op} works on memory outside of the ops, which replays would not repeat`;
    expect(() => scope(() => void f(ones([2, 2])))).toThrow(message);
    expect(backend.calls).toEqual([]);
    expect(device('cpu').memoryStatistics().liveStorages).toBe(live);
  });

  it('calls that are joined in a compiled function, where replays could not make one of them', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const f = compile((x: Tensor) => {
      group.coalesce(() => {
        group.allReduce(x);
        group.send(x, 1);
      });
      return mul(x, 2);
    });
    expect(() => f(ones([2]))).toThrow('compile: send works on memory outside of the ops');
    expect(backend.calls).toEqual([]);
    // It is not left inside.
    group.coalesce(() => void group.allReduce(ones([2])));
    expect(backend.calls).toHaveLength(1);
  });

  it('calls that are joined twice in a compiled function', () => {
    const group = groupOn(new InstantBackend());
    const f = compile((x: Tensor) => {
      group.coalesce(() => void group.coalesce(() => void group.allReduce(x)));
      return mul(x, 2);
    });
    expect(() => f(ones([2]))).toThrow('coalesce: stands inside another one');
  });

  it('a wait in a compiled function for a call outside, whose replays would read what is not there yet', () => {
    const backend = new InstantBackend(null);
    const x = ones([2]);
    const work = groupOn(backend).allReduce(x);
    const f = compile((y: Tensor) => {
      work.wait();
      return mul(x, y);
    });
    expect(() => scope(() => void f(ones([2])))).toThrow(
      'compile: it waits for allReduce, which replays would not',
    );
    expect(work.isDone).toBe(false);
    work.wait();
  });

  it('none of that reaches the others', () => {
    const backend = new InstantBackend();
    expect(() => groupOn(backend).allReduce(ones([2]), { output: ones([3]) })).toThrow('one shape');
    expect(backend.calls).toEqual([]);
  });

  it('but the own piece, a part next to it, empty tensors and parameters under noGrad are taken', () => {
    const x = zeros([4, 3]);
    group.allGather(x, slice(x, 0, 0, 2)).wait();
    groupOn(new InstantBackend(), 1)
      .allGather(x, slice(x, 0, 2, 4))
      .wait();
    group.allReduce(select(x, 0, 0), { output: select(x, 0, 1) }).wait();
    group.allReduce(select(x, 0, 1), { output: select(x, 0, 0) }).wait();
    group.allToAll(empty([0]), empty([0])).wait();
    // Elements of which there are none, or one, lie nowhere twice.
    group.allReduce(expand(empty([0, 1]), [0, 3])).wait();
    group.allReduce(expand(ones([2]), [1, 2])).wait();
    noGrad(() => group.broadcast(ones([2]).requiresGrad_(), 0).wait());
  });
});

describe('errors', () => {
  const failing = (outcome: ConstructorParameters<typeof InstantBackend>[0], rank = 0) =>
    groupOn(new InstantBackend(outcome), rank);

  it("name the world's ranks", async () => {
    const group = failing({ status: 'failed', losses: new Map([[1, 'gone']]), message: 'reset' });
    const work = group.allReduce(ones([2]));
    const error = await work.done.catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CollectiveError);
    expect(error).toMatchObject({ code: 'COLLECTIVE', op: 'allReduce', rank: 4, peers: [7], peer: 7 });
    expect(String(error)).toContain('failed on rank 4: rank 7 is gone');
    expect(() => work.wait()).toThrow(error as Error);
  });

  it('say who called what', () => {
    const group = failing({ status: 'mismatch', descriptions: ['ours', 'theirs'] });
    expect(() => group.barrier().wait()).toThrow('(rank 4: barrier; rank 7: theirs)');
  });

  it('have no peer where none is known', () => {
    const group = failing({ status: 'failed', losses: new Map(), message: 'timed out after 5 ms' });
    expect(() => group.barrier().wait()).toThrow(/timed out after 5 ms/);
    expect(new CollectiveError('m', { op: 'x', rank: 0, peers: [] }).peer).toBe(null);
  });

  it('nothing waits for cause no unhandled rejection', async () => {
    failing({ status: 'failed', losses: new Map(), message: 'm' }).barrier();
    await new Promise((resolve) => setImmediate(resolve));
  });
});
