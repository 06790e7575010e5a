import { full, ones } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { CollectiveError } from '../../src/errors.ts';
import { broadcastAll, startBroadcasts } from '../../src/parallel/broadcast-all.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

describe('broadcasts of many tensors', () => {
  it('begin together, each from its root, and need no gradients', () => {
    const backend = new InstantBackend();
    const tensors = [ones([2]).requiresGrad_(), full([3], 2), full([4], 3)];
    broadcastAll(groupOn(backend), tensors, (i) => i % 2);
    expect(backend.starts).toEqual([3]);
    expect(backend.calls.map(({ kind, root, count }) => [kind, root, count])).toEqual([
      ['broadcast', 0, 2],
      ['broadcast', 1, 3],
      ['broadcast', 0, 4],
    ]);
  });

  it('are waited for by broadcastAll alone, which throws what became of them', () => {
    const backend = new InstantBackend(null);
    const tensors = [ones([2]), ones([3])];
    const work = startBroadcasts(groupOn(backend), tensors, () => 0);
    expect(work.isDone).toBe(false);
    broadcastAll(groupOn(backend), tensors, () => 0);
    expect(work.isDone).toBe(true);
    const failing = new InstantBackend({ status: 'failed', losses: new Map([[1, 'gone']]), message: 'm' });
    expect(() => broadcastAll(groupOn(failing), tensors, () => 0)).toThrow(CollectiveError);
  });
});
