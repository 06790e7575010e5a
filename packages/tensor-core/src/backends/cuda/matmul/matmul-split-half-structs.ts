import { KernelStruct } from '@roofline/cuda';

/** SplitOperand of kernels/matmul/split_place.cuh, two of which split_half.cu takes. */
export const splitOperand = new KernelStruct('SplitOperand', {
  source: 'pointer',
  planes: 'pointer',
  summaries: 'pointer',
  factors: 'pointer',
  sourceBatchStride: 'int64',
  rows: 'int32',
  columns: 'int32',
  sourcePitch: 'int32',
  pitch: 'int32',
  blocks: 'int32',
  linesAreColumns: 'int32',
});

/** MatmulParams of kernels/split_half.cuh, which matmul_split_half.cu takes. */
export const matmulParams = new KernelStruct('MatmulParams', {
  a: 'tensorMap',
  b: 'tensorMap',
  factorsA: 'pointer',
  factorsB: 'pointer',
  c: 'pointer',
  partials: 'pointer',
  ready: 'pointer',
  batchStrideC: 'int64',
  m: 'int32',
  n: 'int32',
  k: 'int32',
  batch: 'int32',
  pitchC: 'int32',
  batchStepA: 'int32',
  batchStepB: 'int32',
  alpha: 'float32',
  streamTiles: 'int32',
  groupM: 'int32',
  sourceA: 'pointer',
  sourceB: 'pointer',
  batchStrideA: 'int64',
  batchStrideB: 'int64',
  pitchA: 'int32',
  pitchB: 'int32',
  summariesA: 'pointer',
  summariesB: 'pointer',
});
