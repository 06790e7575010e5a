import { type Tensor, compile, device, fillInPlace, ones, scope, tensor } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { type ProcessGroup, allGather, allReduce, broadcast, observeWorks, send } from '../../src/index.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

const lost = { status: 'failed', losses: new Map([[1, 'gone' as const]]), message: 'reset' } as const;
const differing = { status: 'mismatch', descriptions: ['ours', 'theirs'] } as const;

describe('an op whose call fails', () => {
  it.each<[string, (group: ProcessGroup, x: Tensor) => Tensor]>([
    ['allReduce', (group, x) => allReduce(x, group)],
    ['allGather', (group, x) => allGather(x, group)],
    ['broadcast', (group, x) => broadcast(x, 1, group)],
  ])('%s: whoever reads its result hears of it, each time, and its input is as it was', (op, use) => {
    const x = tensor([1, 2]);
    const y = use(groupOn(new InstantBackend(lost)), x);
    for (let i = 0; i < 2; i++) expect(() => y.toArray()).toThrow(`${op}: failed on rank 4: rank 7 is gone`);
    expect(x.toArray()).toEqual([1, 2]);
  });

  it('hears of it later, too, where the call was under way', () => {
    const backend = new InstantBackend(null);
    const x = tensor([1, 2]);
    const y = allReduce(x, groupOn(backend));
    backend.settle(differing);
    expect(() => y.toArray()).toThrow('allReduce: the ranks do not call the same');
    expect(x.toArray()).toEqual([1, 2]);
  });
});

describe('a call in place of a compiled function that fails', () => {
  it('is heard of by the first who uses what it writes, which may be written anew then', () => {
    const x = tensor([1, 2]);
    const output = tensor([0, 0]);
    const group = groupOn(new InstantBackend(lost));
    compile(() => void group.allReduce(x, { output }))();
    expect(() => output.toArray()).toThrow('allReduce: failed on rank 4: rank 7 is gone');
    fillInPlace(output, 3);
    expect([x.toArray(), output.toArray()]).toEqual([
      [1, 2],
      [3, 3],
    ]);
    compile(() => void group.allReduce(x))();
    expect(() => fillInPlace(x, 4)).toThrow('allReduce: failed on rank 4: rank 7 is gone');
    fillInPlace(x, 4);
    expect(x.toArray()).toEqual([4, 4]);
  });
});

describe('an op under way', () => {
  it('is waited for by the first who reads its result, or writes its input, and by nobody before', () => {
    const backend = new InstantBackend(null);
    const x = tensor([1, 2]);
    const y = allReduce(x, groupOn(backend));
    let done = false;
    const settle = backend.settle.bind(backend);
    backend.settle = (outcome) => {
      done = true;
      settle(outcome);
    };
    expect(y.shape).toEqual([2]);
    expect(done).toBe(false);
    y.toArray();
    expect(done).toBe(true);
  });

  it('keeps the memory of the CPU that it works on until it has ended', () => {
    const backend = new InstantBackend(null);
    const before = device('cpu').memoryStatistics().liveStorages;
    scope(() => {
      send(ones([3]), 1, groupOn(backend));
      allReduce(ones([3]), groupOn(backend));
    });
    expect(device('cpu').memoryStatistics().liveStorages).toBe(before + 3);
    backend.settle();
    expect(device('cpu').memoryStatistics().liveStorages).toBe(before);
  });

  it('is seen by observeWorks', () => {
    const seen: string[] = [];
    const stop = observeWorks(({ op }) => seen.push(op));
    allReduce(ones([2]), groupOn(new InstantBackend()));
    stop();
    expect(seen).toEqual(['allReduce']);
  });

  it('begins with others inside coalesce', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const results: Tensor[] = [];
    group.coalesce(() => {
      results.push(allReduce(ones([2]), group), allGather(ones([2]), group));
      expect(() => results[0]!.toArray()).toThrow('begins when coalesce() returns');
    });
    expect(backend.starts).toEqual([2]);
    expect(results[1]!.shape).toEqual([4]);
    results[0]!.toArray();
  });

  it('inside coalesce sends what its input was: that is written once the call has begun, and then after it', () => {
    const backend = new InstantBackend(null);
    const group = groupOn(backend);
    const x = tensor([1, 2]);
    let done = 0;
    const settle = backend.settle.bind(backend);
    backend.settle = (outcome) => {
      done++;
      settle(outcome);
    };
    group.coalesce(() => {
      allReduce(x, group);
      allGather(x, group);
      expect(() => fillInPlace(x, 7)).toThrow('allReduce');
    });
    expect([x.toArray(), done > 0]).toEqual([[1, 2], true]);
    done = 0;
    group.coalesce(() => {
      allReduce(x, group);
      allGather(x, group);
    });
    fillInPlace(x, 7);
    expect(done).toBeGreaterThan(0);
    let result: Tensor;
    expect(() =>
      group.coalesce(() => {
        result = allReduce(x, group);
        throw new Error('ours');
      }),
    ).toThrow('ours');
    expect(() => result.toArray()).toThrow('ours');
    fillInPlace(x, 8);
    expect(x.toArray()).toEqual([8, 8]);
  });
});
