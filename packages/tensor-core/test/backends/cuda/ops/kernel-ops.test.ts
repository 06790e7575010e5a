import { describe } from 'vitest';
import type { DType } from '../../../../src/index.ts';
import { describeAnyAll } from '../../../op-cases/reduce/any-all.ts';
import { describeClamp } from '../../../op-cases/elementwise/clamp.ts';
import { describeCrossEntropy } from '../../../op-cases/nn/cross-entropy.ts';
import { describeCumsum } from '../../../op-cases/reduce/cumsum.ts';
import { describeDropout } from '../../../op-cases/random/dropout.ts';
import { describeEmbedding } from '../../../op-cases/index/embedding.ts';
import { describeGather } from '../../../op-cases/index/gather.ts';
import { describeIndexCopy } from '../../../op-cases/index/index-copy.ts';
import { describeExtrema } from '../../../op-cases/reduce/extrema.ts';
import { describeNorms } from '../../../op-cases/nn/norm.ts';
import { describeRandom } from '../../../op-cases/random/random.ts';
import { describeReduce } from '../../../op-cases/reduce/reduce.ts';
import { describeRope } from '../../../op-cases/nn/rope.ts';
import { describeSigmoid } from '../../../op-cases/elementwise/sigmoid.ts';
import { describeSoftmax } from '../../../op-cases/nn/softmax.ts';
import { describeSwiglu } from '../../../op-cases/nn/swiglu.ts';
import { describeTriangles } from '../../../op-cases/shape/tril.ts';
import { describeVariance } from '../../../op-cases/reduce/variance.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

// One dtype, because each variant of a kernel takes the host's compiler a second; a GPU runs them all.
const dtypes: readonly DType[] = ['float32'];

describe.skipIf(!hostCompilerVersion())('on the emulated GPU', () => {
  const emulated = openEmulatedDevice();
  const open = () => emulated;

  describe('softmax', () => {
    describeSoftmax(open, dtypes);
  });
  describe('norms', () => {
    describeNorms(open, dtypes);
  });
  describe('crossEntropy', () => {
    describeCrossEntropy(open, dtypes);
  });
  describe('embedding', () => {
    describeEmbedding(open, dtypes);
  });
  describe('gather', () => {
    describeGather(open, dtypes);
  });
  describe('indexCopyInPlace', () => {
    describeIndexCopy(open);
  });
  describe('reductions', () => {
    describeReduce(open);
  });
  describe('rope', () => {
    describeRope(open, dtypes);
  });
  describe('sigmoid', () => {
    describeSigmoid(open);
  });
  describe('swiglu', () => {
    describeSwiglu(open, dtypes);
  });
  describe('triangles', () => {
    describeTriangles(open, dtypes);
  });
  describe('variance', () => {
    describeVariance(open, dtypes);
  });
  describe('random', () => {
    describeRandom(open);
  });
  describe('extrema', () => {
    describeExtrema(open, dtypes);
  });
  describe('cumsum', () => {
    describeCumsum(open, dtypes);
  });
  describe('any and all', () => {
    describeAnyAll(open, ['float32', 'bool']);
  });
  describe('clamp, abs and sign', () => {
    describeClamp(open);
  });
  describe('dropout', () => {
    describeDropout(open, dtypes);
  });
});
