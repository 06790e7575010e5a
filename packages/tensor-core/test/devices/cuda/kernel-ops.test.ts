import { describe } from 'vitest';
import type { DType } from '../../../src/index.ts';
import { describeCrossEntropy } from '../../op-cases/cross-entropy.ts';
import { describeEmbedding } from '../../op-cases/embedding.ts';
import { describeGather } from '../../op-cases/gather.ts';
import { describeNorms } from '../../op-cases/norm.ts';
import { describeRandom } from '../../op-cases/random.ts';
import { describeRope } from '../../op-cases/rope.ts';
import { describeSoftmax } from '../../op-cases/softmax.ts';
import { describeSwiglu } from '../../op-cases/swiglu.ts';
import { describeTriangles } from '../../op-cases/tril.ts';
import { hostCompilerVersion, openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

// One dtype, because each variant of a kernel takes the host's compiler a second; a GPU runs them all.
const dtypes: readonly DType[] = ['float32'];

describe.skipIf(!hostCompilerVersion())('on the emulated GPU', { timeout: 300_000 }, () => {
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
    describeGather(open);
  });
  describe('rope', () => {
    describeRope(open, dtypes);
  });
  describe('swiglu', () => {
    describeSwiglu(open, dtypes);
  });
  describe('triangles', () => {
    describeTriangles(open, dtypes);
  });
  describe('random', () => {
    describeRandom(open);
  });
});
