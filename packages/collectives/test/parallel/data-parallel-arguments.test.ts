import { DTypeError, ShapeError, type Tensor, cast, expand, keep, ones } from '@roofline/tensor-core';
import { expect, it } from 'vitest';
import { DistributedDataParallel, defaultBucketBytes } from '../../src/index.ts';
import { namedTensors } from '../../src/parallel/data-parallel-arguments.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

it.each([
  ['a bool', () => cast(ones([2]), 'bool'), DTypeError, /"mask" is bool, which does not travel; cast\(\) it/],
  ['an expanded one', () => expand(ones([1]), [2]), ShapeError, /elements of "mask" \[2\] lie at one place/],
])('names %s, which other ranks could not get, before anything is sent', (_, make, type, message) => {
  const backend = new InstantBackend();
  const named: [string, Tensor][] = [
    ['weight', keep(ones([2])).requiresGrad_()],
    ['mask', keep(make())],
  ];
  const wrap = () => new DistributedDataParallel({ namedParameters: () => named }, groupOn(backend));
  expect(wrap).toThrow(type);
  expect(wrap).toThrow(message);
  expect(backend.calls).toEqual([]);
  for (const [, tensor] of named) tensor.dispose();
});

it('takes a tensor that has two names once', () => {
  const [shared, other] = [1, 2].map((value) => keep(ones([value])).requiresGrad_());
  const named: [string, Tensor][] = [
    ['embedding', shared!],
    ['bias', other!],
    ['head', shared!],
  ];
  expect(namedTensors({ namedParameters: () => named })).toEqual(named.slice(0, 2));
  for (const tensor of [shared!, other!]) tensor.dispose();
});

it('takes buckets of 25 MiB, or of a 64th of the gradients where that is more', () => {
  const least = 25 * 2 ** 20;
  const bytes = [0, 1, 64 * least, 64 * least + 1, 64 * (least + 1), 64 * (least + 1) + 1];
  expect(bytes.map(defaultBucketBytes)).toEqual([least, least, least, least + 1, least + 1, least + 2]);
});
