import { expect, it } from 'vitest';
import { structLayout } from '../../../../../../tooling/struct-layout.ts';
import {
  matmulParams,
  splitOperand,
} from '../../../../src/backends/cuda/matmul/matmul-split-half-structs.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';

it.skipIf(hostCompilerVersion() === null).each([
  ['split_half.cuh', matmulParams],
  ['split_place.cuh', splitOperand],
])('%s lays its structure out as the host writes it', (file, { name, byteLength, offsets }) => {
  expect(structLayout({ file }, name, Object.keys(offsets))).toEqual({ byteLength, offsets });
});
