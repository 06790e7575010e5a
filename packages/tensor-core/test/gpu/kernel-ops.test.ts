import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeAnyAll } from '../op-cases/reduce/any-all.ts';
import { describeClamp, describeClampGradients } from '../op-cases/elementwise/clamp.ts';
import { describeCrossEntropy } from '../op-cases/nn/cross-entropy.ts';
import { describeLinearCrossEntropy } from '../op-cases/nn/linear-cross-entropy.ts';
import { describeCumsum } from '../op-cases/reduce/cumsum.ts';
import { describeDropout } from '../op-cases/random/dropout.ts';
import { describeEinsum, describeEinsumGradients } from '../op-cases/matrix/einsum.ts';
import { describeEmbedding } from '../op-cases/index/embedding.ts';
import { describeExtrema, describeExtremaGradients } from '../op-cases/reduce/extrema.ts';
import { describeGather } from '../op-cases/index/gather.ts';
import { describeIndexCopy } from '../op-cases/index/index-copy.ts';
import { describeNorms } from '../op-cases/nn/norm.ts';
import { describeRandom } from '../op-cases/random/random.ts';
import { describeReduce } from '../op-cases/reduce/reduce.ts';
import { describeRope } from '../op-cases/nn/rope.ts';
import { describeSigmoid } from '../op-cases/elementwise/sigmoid.ts';
import { describeCreation, describeSplits } from '../op-cases/shape/shape-and-creation.ts';
import { describeSoftmax } from '../op-cases/nn/softmax.ts';
import { describeSwiglu } from '../op-cases/nn/swiglu.ts';
import { describeTriangles } from '../op-cases/shape/tril.ts';
import { describeVariance } from '../op-cases/reduce/variance.ts';

const cuda = () => device('cuda');

describe('softmax on CUDA', () => {
  describeSoftmax(cuda);
});
describe('norms on CUDA', () => {
  describeNorms(cuda);
});
describe('crossEntropy on CUDA', () => {
  describeCrossEntropy(cuda);
});
describe('linearCrossEntropy on CUDA', () => {
  describeLinearCrossEntropy(cuda);
});
describe('embedding on CUDA', () => {
  describeEmbedding(cuda);
});
describe('gather on CUDA', () => {
  describeGather(cuda);
});
describe('indexCopyInPlace on CUDA', () => {
  describeIndexCopy(cuda);
});
describe('reductions on CUDA', () => {
  describeReduce(cuda);
});
describe('rope on CUDA', () => {
  describeRope(cuda);
});
describe('sigmoid on CUDA', () => {
  describeSigmoid(cuda);
});
describe('swiglu on CUDA', () => {
  describeSwiglu(cuda);
});
describe('triangles on CUDA', () => {
  describeTriangles(cuda);
});
describe('random on CUDA', () => {
  describeRandom(cuda);
});
describe('extrema on CUDA', () => {
  describeExtrema(cuda);
  describeExtremaGradients(cuda);
});
describe('cumsum on CUDA', () => {
  describeCumsum(cuda);
});
describe('variance on CUDA', () => {
  describeVariance(cuda);
});
describe('any and all on CUDA', () => {
  describeAnyAll(cuda);
});
describe('clamp, abs and sign on CUDA', () => {
  describeClamp(cuda);
  describeClampGradients(cuda);
});
describe('dropout on CUDA', () => {
  describeDropout(cuda);
});
describe('flatten, split and chunk on CUDA', () => {
  describeSplits(cuda);
});
describe('creation on CUDA', () => {
  describeCreation(cuda);
});
describe('einsum on CUDA', () => {
  describeEinsum(cuda);
  describeEinsumGradients(cuda);
});
