import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';

/** A square leaf [4, 4], its gradient's slice after four other elements, and the gradient that `loss` gives such a leaf. */
function withPlace(loss: (weight: t.Tensor) => t.Tensor) {
  const weight = counting().requiresGrad_();
  const flat = t.full([24], NaN);
  weight.setGradientBuffer(t.view(t.slice(flat, 0, 4, 20), [4, 4]));
  const plain = counting().requiresGrad_();
  loss(plain).backward();
  const copies: boolean[] = [];
  const stop = weight.onGradientAccumulated((_, wasCopied) => copies.push(wasCopied));
  return { weight, flat, copies, stop, expected: plain.grad!.toFlatArray() };
}

const counting = () => t.reshape(t.arange(1, 17, 1, { dtype: 'float32' }), [4, 4]);
const weighted = (x: t.Tensor) => t.sum(t.mul(x, counting()));

it.each<[string, (w: t.Tensor) => t.Tensor, string[]]>([
  ['behind a matrix', (w) => weighted(t.matmul(counting(), w)), []],
  ['before a matrix', (w) => weighted(t.matmul(w, counting())), []],
  ['of a linear layer', (w) => weighted(t.linear(counting(), w)), []],
  ['under autocast', (w) => t.autocast('bfloat16', () => weighted(t.linear(counting(), w))), []],
  ['behind a batch', (w) => t.sum(t.matmul(t.expand(counting(), [3, 4, 4]), w)), []],
  ['on both sides', (w) => weighted(t.matmul(w, w)), ['add_']],
  ['in two layers', (w) => weighted(t.linear(t.linear(counting(), w), w)), ['add_']],
  // Made column by column, or one for each matrix of a batch.
  ['transposed', (w) => weighted(t.matmul(counting(), t.transpose(w))), ['copy_']],
  ['before a batch', (w) => t.sum(t.matmul(w, t.expand(counting(), [3, 4, 4]))), ['copy_']],
])('a product writes the gradient of a weight %s in its place', (_, loss, writes) => {
  t.scope(() => {
    const { weight, flat, copies, expected } = withPlace(loss);
    const result = loss(weight);
    const ran: string[] = [];
    const ignore = t.observeOps({ before: ({ name }) => void ran.push(name) });
    result.backward();
    ignore();
    expect(
      ran.filter((name) => /^(copy_|add_|fill_)$/.test(name)).filter((name) => name !== 'fill_'),
    ).toEqual(writes);
    expect(weight.grad!.toFlatArray()).toEqual(expected);
    expect(flat.toFlatArray()).toEqual([...Array(4).fill(NaN), ...expected, ...Array(4).fill(NaN)]);
    expect(copies).toEqual([writes.includes('copy_')]);
  });
});

it('a gradient that was written early is not lost to a checkpoint that is differentiated before it arrives', () => {
  t.scope(() => {
    const x = counting().requiresGrad_();
    // The gradient of W as the first operand is there before the checkpoint adds another.
    const loss = (w: t.Tensor) =>
      weighted(
        t.matmul(
          w,
          t.checkpoint((y) => t.linear(y, w), x),
        ),
      );
    const { weight, expected } = withPlace(loss);
    loss(weight).backward();
    expect(weight.grad!.toFlatArray()).toEqual(expected);
  });
});

it('a compiled function copies its gradient there', () => {
  t.scope(() => {
    const { weight, flat, expected, stop } = withPlace((w) => weighted(t.linear(counting(), w)));
    stop();
    const step = t.compile((input: t.Tensor) => {
      weighted(t.linear(input, weight)).backward();
    });
    for (const factor of [1, 2]) {
      step(counting());
      expect(flat.toFlatArray().slice(4, 20)).toEqual(expected.map((value) => factor * value));
    }
  });
});
