import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeCrossEntropy } from '../op-cases/cross-entropy.ts';
import { describeEmbedding } from '../op-cases/embedding.ts';
import { describeGather } from '../op-cases/gather.ts';
import { describeNorms } from '../op-cases/norm.ts';
import { describeRandom } from '../op-cases/random.ts';
import { describeReduce } from '../op-cases/reduce.ts';
import { describeRope } from '../op-cases/rope.ts';
import { describeSigmoid } from '../op-cases/sigmoid.ts';
import { describeSoftmax } from '../op-cases/softmax.ts';
import { describeSwiglu } from '../op-cases/swiglu.ts';
import { describeTriangles } from '../op-cases/tril.ts';

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
describe('embedding on CUDA', () => {
  describeEmbedding(cuda);
});
describe('gather on CUDA', () => {
  describeGather(cuda);
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
