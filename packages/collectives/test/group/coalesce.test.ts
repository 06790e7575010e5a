import {
  DeviceError,
  type Tensor,
  compile,
  device,
  fillInPlace,
  mul,
  ones,
  scope,
  slice,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { CollectiveError } from '../../src/errors.ts';
import { allReduce } from '../../src/ops/all-reduce.ts';
import type { Outcome } from '../../src/group/backend.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

describe('coalesced calls', () => {
  it('begin together after the function, and are one Work', () => {
    const backend = new InstantBackend(null);
    const group = groupOn(backend);
    const work = group.coalesce(() => {
      group.allReduce(ones([2]));
      group.broadcast(ones([3]), 0);
      expect(backend.starts).toEqual([]);
    });
    expect(backend.starts).toEqual([2]);
    expect([work.op, work.isDone]).toEqual(['coalesce', false]);
    backend.settle();
    expect(work.isDone).toBe(true);
    expect(() => work.wait()).not.toThrow();
  });

  it('fail as the first of them', async () => {
    const backend = new InstantBackend({ status: 'failed', losses: new Map([[1, 'gone']]), message: 'm' });
    const group = groupOn(backend);
    const work = group.coalesce(() => void group.allReduce(ones([2])));
    expect(() => work.wait()).toThrow(CollectiveError);
    await expect(work.done).rejects.toThrow(/allReduce.*rank 7 is gone/);
  });

  it('fail as the first that did, whatever comes after it', async () => {
    const done: Outcome = { status: 'done' };
    const lost = (message: string): Outcome => ({
      status: 'failed',
      losses: new Map([[1, 'gone']]),
      message,
    });
    for (const outcomes of [
      [lost('first'), done, done],
      [done, lost('first'), lost('second')],
      [lost('first'), lost('second'), done],
      [done, done, lost('first')],
    ]) {
      const backend = new InstantBackend(null);
      const group = groupOn(backend);
      const work = group.coalesce(() => {
        for (const _ of outcomes) group.allReduce(ones([2]));
      });
      backend.settleEach(outcomes);
      expect(work.isDone).toBe(true);
      expect(() => work.wait()).toThrow(/\(first\)/);
      await expect(work.done).rejects.toThrow(/\(first\)/);
    }
  });

  it('are done with the last of them', () => {
    const backend = new InstantBackend(null);
    const group = groupOn(backend);
    const work = group.coalesce(() => {
      group.allReduce(ones([2]));
      group.allReduce(ones([2]));
    });
    backend.settleEach([{ status: 'failed', losses: new Map(), message: 'first' }]);
    expect(work.isDone).toBe(false);
    backend.settle();
    expect(() => work.wait()).toThrow(/first/);
  });

  it('are none where the function throws: nothing is sent, nothing is held', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const x = ones([2]);
    const half = () => {
      group.allReduce(x);
      throw new RangeError('half-way');
    };
    expect(() => group.coalesce(half)).toThrow('half-way');
    expect([backend.calls.length, x.storage.references]).toEqual([0, 1]);
    group.allReduce(x).wait();
    expect(backend.starts).toEqual([1]);
  });

  it('are refused where one needs what another brings back from a copy, also in a compiled function', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const y = ones([3, 4]);
    const [left, right, to] = [slice(y, 1, 0, 3), slice(y, 1, 1, 4), ones([3, 3])];
    const pairs: readonly (() => void)[] = [
      () => [group.allReduce(left), group.allReduce(right)],
      () => [group.allReduce(left), group.allReduce(y)],
      () => [group.allReduce(y), group.allReduce(left)],
      () => [group.allReduce(left), group.allReduce(left, { output: to })],
      () => [group.allReduce(y), group.allReduce(left, { output: to })],
    ];
    for (const pair of pairs) {
      expect(() => group.coalesce(pair)).toThrow(DeviceError);
      expect(() => compile(() => void group.coalesce(pair))()).toThrow(
        /allReduce, which is under way, works/,
      );
    }
    expect(backend.starts).toEqual([]);
    // What has been read into a copy may be written, and parts that lie apart are nothing to each other.
    const fitting = () => {
      group.allReduce(left, { output: to });
      group.allReduce(slice(y, 1, 0, 2));
      group.allReduce(slice(y, 1, 2, 4));
    };
    group.coalesce(fitting).wait();
    compile(() => void group.coalesce(fitting))();
    expect(backend.starts).toEqual([3, 3]);
  });

  it('of a compiled function send what their tensors were at the call, also those that are disposed of since', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const [x, y] = [ones([2, 4]), ones([2, 4])];
    const half = slice(x, 1, 0, 2);
    const to = ones([2, 2]);
    for (const written of [x, y]) {
      const call = () => {
        group.allReduce(x, { output: y });
        fillInPlace(written, 2);
      };
      expect(() => group.coalesce(call)).toThrow(DeviceError);
      expect(() => compile(() => void group.coalesce(call))()).toThrow(
        'coalesce: an op writes to [2, 4] after allReduce, which begins when coalesce() returns',
      );
    }
    const columns = () => {
      group.allReduce(half);
      fillInPlace(x, 2);
    };
    expect(() => compile(() => void group.coalesce(columns))()).toThrow('coalesce: an op writes to [2, 2]');
    expect(backend.starts).toEqual([]);
    const before = device('cpu').memoryStatistics().liveStorages;
    const step = compile(() => {
      group.coalesce(() => {
        scope(() => group.allReduce(mul(x, 3), { output: y }));
        // A strided input has been copied, and the other half is no part of it.
        group.allReduce(half, { output: to });
        fillInPlace(x, 5);
      });
    });
    step();
    expect(backend.starts).toEqual([2]);
    step.dispose();
    expect(device('cpu').memoryStatistics().liveStorages).toBe(before);
  });

  it('of a compiled function are refused where an op among them reads what one before it is to write', () => {
    const backend = new InstantBackend();
    const group = groupOn(backend);
    const x = ones([8]);
    const [first, second, across] = [slice(x, 0, 0, 4), slice(x, 0, 4, 8), slice(x, 0, 3, 5)];
    const mixed = (written: Tensor, read: Tensor) =>
      compile(() => {
        group.coalesce(() => {
          group.allReduce(written);
          allReduce(read, group);
        });
      });
    for (const [written, read] of [
      [x, x],
      [first, across],
      [second, across],
      [x, second],
    ] as const)
      expect(() => mixed(written, read)()).toThrow('allReduce reads what a call in place before it writes');
    expect(backend.starts).toEqual([]);
    mixed(first, second)();
    mixed(second, first)();
    mixed(x, ones([8]))();
    expect(backend.starts).toEqual([1, 1, 1, 1, 1, 1]);
  });

  it('cannot be nested, async, or waited for inside', () => {
    const group = groupOn(new InstantBackend());
    expect(() => group.coalesce(() => void group.coalesce(() => {}))).toThrow(/inside another/);
    expect(() => group.coalesce(async () => {})).toThrow(/is async/);
    expect(() => group.coalesce(() => group.allReduce(ones([2])).wait())).toThrow(/wait\(\) after that/);
  });
});
