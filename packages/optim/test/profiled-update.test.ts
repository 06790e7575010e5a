import { compile, full, keep, matmul, mul, profile, transpose, zeros } from '@roofline/tensor-core';
import { openPlanningDevice } from '@roofline/tensor-core/testing';
import { expect, it } from 'vitest';
import { AdamW } from '../src/index.ts';

it('counts an update by its product under the roof of the dtype that is multiplied, not of its float32 parameter', async () => {
  const device = openPlanningDevice();
  const w = keep(zeros([32, 32], { device }));
  const optimizer = new AdamW([w]);
  const made = () => mul(full([32, 32], 1, { device, dtype: 'bfloat16' }), 2);
  w.grad = keep(zeros([32, 32], { device }));
  optimizer.step();
  const step = compile(() => {
    w.grad = matmul(transpose(made()), made(), { dtype: 'float32' });
    optimizer.step();
    optimizer.zeroGrad();
  });
  optimizer.zeroGrad();
  while (step.cache.hits === 0) step();
  const { ops } = await profile(() => step());
  const products = ops.filter(({ isMatrixProduct }) => isMatrixProduct);
  expect(products.map(({ members }) => members)).toEqual([['matmul', 'adamw']]);
  expect(products.map(({ dtype }) => dtype)).toEqual(['bfloat16']);
});
