import {
  AutogradError,
  DeviceError,
  type Tensor,
  full,
  mul,
  ones,
  scope,
  select,
  slice,
  sum,
  transpose,
  zeros,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import type { Work } from '../../src/group/work.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

/** Asks what became of a call: a program that never does gets the error at the end of the process. */
function hear(work: Work): void {
  try {
    work.wait();
  } catch {}
}

describe('memory of a call', () => {
  it('is held until the call is done, though all handles are gone', () => {
    const backend = new InstantBackend(null);
    const { storage } = scope(() => {
      const x = ones([8]);
      groupOn(backend).allReduce(x);
      return { storage: x.storage };
    });
    expect(storage.references).toBe(1);
    backend.settle();
    expect(storage.references).toBe(0);
  });

  it.each([
    { status: 'done' } as const,
    { status: 'mismatch', descriptions: ['x', 'y'] } as const,
    { status: 'failed', losses: new Map(), message: 'm' } as const,
  ])('goes back after $status, copies of views too', (outcome) => {
    const probe = ones([1]);
    const before = probe.device.memoryStatistics().liveStorages;
    const backend = new InstantBackend(outcome);
    scope(() => {
      const x = transpose(ones([2, 3]), 0, 1);
      hear(groupOn(backend).allReduce(x));
      hear(groupOn(backend).allReduce(x, { output: zeros([3, 2]) }));
      hear(groupOn(backend).allGather(transpose(zeros([3, 4]), 0, 1), transpose(zeros([3, 2]), 0, 1)));
    });
    expect(probe.device.memoryStatistics().liveStorages).toBe(before);
  });

  it('that a call may find before or after another one has written it is refused', () => {
    const rows = zeros([2, 3]);
    const [first, second] = [0, 1].map((column) => select(rows, 1, column)) as [Tensor, Tensor];
    const row = select(rows, 0, 1);
    const [group, other] = [groupOn(new InstantBackend(null)), groupOn(new InstantBackend(null))];
    const pairs = groupOn(new InstantBackend(null, false));
    const refused = (call: () => Work) => {
      const { references } = rows.storage;
      expect(call).toThrow(DeviceError);
      expect(call).toThrow(/which is under way, works on memory of the tensor .*; wait\(\) for that first/);
      expect(rows.storage.references).toBe(references);
    };
    // Each pair of calls: the second is refused while the first is under way, and is fine after it.
    const racing: [() => Work, () => Work][] = [
      [() => group.allReduce(first), () => group.allReduce(first)],
      [() => group.allReduce(rows), () => group.allReduce(first)],
      [() => group.allReduce(first), () => group.allReduce(rows)],
      [() => group.allReduce(rows), () => group.allReduce(first, { output: zeros([2]) })],
      [() => group.allReduce(rows), () => other.allReduce(rows)],
      [() => group.broadcast(rows, 0), () => other.broadcast(rows, 1)],
      [() => pairs.recv(rows, 1), () => pairs.send(row, 1)],
      [() => pairs.send(rows, 1), () => pairs.allReduce(rows)],
    ];
    for (const [begin, follow] of racing) {
      const work = begin();
      refused(follow);
      work.wait();
      follow().wait();
    }
    const inTurn: [() => Work, () => Work][] = [
      [() => group.allReduce(rows), () => group.allReduce(rows)],
      [() => group.allReduce(first), () => group.allReduce(second)],
      [() => group.broadcast(rows, 0), () => other.broadcast(rows, 0)],
      [() => group.broadcast(first, 0), () => other.allReduce(rows)],
      [() => group.recv(rows, 1), () => group.allReduce(rows)],
      // What the first reads where it lies is written once that has ended.
      [() => group.allReduce(rows, { output: zeros([2, 3]) }), () => group.allReduce(first)],
      [() => pairs.allReduce(rows), () => pairs.allReduce(rows)],
    ];
    for (const calls of inTurn) for (const work of calls.map((call) => call())) work.wait();
  });

  it('that a refused call was to write is free again', () => {
    const group = groupOn(new InstantBackend(null));
    const rows = zeros([2, 3]);
    const output = zeros([2]);
    const work = group.allReduce(rows);
    expect(() => group.allReduce(select(rows, 1, 0), { output })).toThrow(DeviceError);
    expect(output.storage.references).toBe(1);
    groupOn(new InstantBackend(null)).allReduce(output).wait();
    work.wait();
  });

  it('goes back, of all calls, where a backend cannot begin them', () => {
    const backend = new InstantBackend();
    backend.start = () => {
      throw new RangeError('no more calls');
    };
    const group = groupOn(backend);
    const tensors = [ones([2]), ones([3])];
    const begin = () => group.coalesce(() => tensors.forEach((x) => void group.allReduce(x)));
    expect(begin).toThrow('no more calls');
    expect(tensors.map(({ storage }) => storage.references)).toEqual([1, 1]);
  });

  it('a write is noted: backward through what was saved before throws', () => {
    const x = full([3], 2);
    const weight = ones([3]).requiresGrad_();
    const product = sum(mul(x, weight));
    groupOn(new InstantBackend()).allReduce(x).wait();
    expect(() => product.backward()).toThrow(AutogradError);
  });

  it('a write is noted as it begins, and once more as it ends, for what was saved between', () => {
    const [x, weight] = [full([3], 2), ones([3]).requiresGrad_()];
    const savedBefore = sum(mul(x, weight));
    const work = groupOn(new InstantBackend(null)).allReduce(x);
    expect(() => savedBefore.backward()).toThrow(AutogradError);
    const savedBetween = sum(mul(x, weight));
    work.wait();
    expect(() => savedBetween.backward()).toThrow(AutogradError);
  });

  it('a write is noted where it is, and nowhere else', () => {
    const x = full([64], 2);
    const [low, high] = [slice(x, 0, 8, 10), slice(x, 0, 32, 34)];
    const weight = ones([2]).requiresGrad_();
    const [ofLow, ofHigh] = [sum(mul(low, weight)), sum(mul(high, weight))];
    groupOn(new InstantBackend()).allReduce(high).wait();
    expect(() => ofHigh.backward()).toThrow(AutogradError);
    ofLow.backward();
    expect(weight.grad!.toFlatArray()).toEqual([2, 2]);
  });
});
