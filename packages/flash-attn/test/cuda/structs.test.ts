import { hostCompilerVersion } from '@roofline/cuda/testing';
import { expect, it } from 'vitest';
import { structLayout } from '../../../../tooling/struct-layout.ts';
import { flashStruct } from '../../src/cuda/flash-params.ts';
import { hopperBackwardStruct } from '../../src/cuda/hopper/hopper-backward-params.ts';
import { hopperForwardStruct } from '../../src/cuda/hopper/hopper-forward.ts';

// Any variant will do: no macro changes a structure, other than the types that its pointers lead to.
const hopper = {
  ELEMENT: 'bfloat16',
  HEAD_DIM: 64,
  CHUNK: 64,
  BLOCK_M: 128,
  BLOCK_N: 128,
  STAGES: 2,
  CAUSAL: 0,
};
const forward = { WARPGROUPS: 2, SPLITS: 1, OUTPUT_OVER_QUERIES: 0, Q_IN_REGISTERS: 0 };
const backward = { SUM_BUFFERS: 0, NARROW_PADDED: 0 };
const kernels = [new URL('../../kernels/', import.meta.url)];

it.skipIf(hostCompilerVersion() === null).each([
  ['flash_params.cuh', { ELEMENT: 'double' }, flashStruct],
  ['flash_hopper_forward.cuh', { ...hopper, ...forward }, hopperForwardStruct],
  ['flash_hopper_backward.cuh', { ...hopper, ...backward }, hopperBackwardStruct],
] as const)(
  '%s lays its structure out as the host writes it',
  (file, defines, { name, byteLength, offsets }) => {
    const layout = structLayout({ file, defines, kernels }, name, Object.keys(offsets));
    expect(layout).toEqual({ byteLength, offsets });
  },
);
