import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { type Device, type Tensor, compile } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';

const values = (x: Tensor) => x.toFlatArray();

describe('on the CPU', () => keepsStrides(() => t.device('cpu')));

describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const device = openEmulatedDevice();
  keepsStrides(() => device);
});

/** Views of fresh memory whose layout differs from their elements' order. */
const layouts: [string, (base: Tensor) => Tensor][] = [
  ['transposed', (base) => t.transpose(base, 0, 1)],
  ['columns', (base) => t.slice(base, 1, 1, 3)],
  ['a column', (base) => t.select(base, 1, 2)],
  ['every other row, transposed', (base) => t.transpose(t.slice(base, 0, 0, 4, 2), 0, 1)],
  ['expanded', (base) => t.expand(t.slice(base, 1, 1, 2), [4, 3])],
  ['expanded twice', (base) => t.expand(t.slice(t.slice(base, 0, 2, 3), 1, 2, 3), [2, 3])],
  ['a part that is contiguous', (base) => t.slice(base, 0, 1, 3)],
  ['empty', (base) => t.transpose(t.slice(base, 0, 1, 1), 0, 1)],
];

/** What the layout of an argument decides. */
const uses: [string, (x: Tensor) => Tensor | Tensor[]][] = [
  ['its elements in order', (x) => t.mul(t.reshape(x, [x.size]), 2)],
  ['a copy written to', (x) => (write(t.reshape(x, [x.size])), t.mul(x, 3))],
  ['contiguous() written to', (x) => (write(t.contiguous(x)), t.mul(x, 3))],
  ['flatten() written to', (x) => (write(t.flatten(x)), t.mul(x, 3))],
  ['whether it is contiguous', (x) => t.mul(x, x.isContiguous ? 2 : 5)],
  [
    'its strides',
    (x) =>
      t.mul(
        x,
        x.strides.reduce((sum, stride) => sum + stride, 1),
      ),
  ],
  ['its transpose', (x) => t.mul(t.reshape(t.transpose(x, 0, -1), [x.size]), 2)],
  ['a part', (x) => t.mul(t.slice(x, 0, 0, Math.min(1, x.shape[0]!)), 7)],
  ['a sum and a product', (x) => [t.sum(x), t.matmul(t.reshape(x, [1, x.size]), t.reshape(x, [x.size, 1]))]],
];

/** Writes where PyTorch would: what overlaps itself may not be written. */
function write(x: Tensor): void {
  if (x.strides.some((stride, i) => stride === 0 && x.shape[i]! > 1)) return;
  t.addInPlace(x, t.full(x.shape, 20, { device: x.device }));
}

function keepsStrides(deviceOf: () => Device): void {
  const base = (first: number) =>
    t.reshape(t.arange(first, first + 20, 1, { device: deviceOf(), dtype: 'float32' }), [4, 5]);
  const seenBy = (fn: (x: Tensor) => Tensor | Tensor[], memory: Tensor, x: Tensor) => {
    const result = fn(x);
    return [...(Array.isArray(result) ? result : [result]).map(values), values(memory)];
  };

  describe.each(layouts)('an argument that is %s', (_, layout) => {
    it.each(uses)('does what eager code does: %s', (_, use) => {
      const compiled = compile(use);
      for (const first of [0, 3, 40]) {
        const [eager, own] = [base(first), base(first)];
        expect(seenBy(compiled, own, layout(own))).toEqual(seenBy(use, eager, layout(eager)));
      }
      expect(compiled.cache).toMatchObject({ misses: 1, hits: 2 });
      compiled.dispose();
    });
  });

  it('is written in place, and nothing outside it', () => {
    const add = compile((x: Tensor) => t.addInPlace(x, t.full(x.shape, 100, { device: x.device })));
    for (let call = 0; call < 3; call++) {
      const [eager, own] = [base(call), base(call)];
      for (const at of [(x: Tensor) => t.slice(x, 1, 1, 3), (x: Tensor) => t.transpose(x, 0, 1)]) {
        t.addInPlace(at(eager), t.full(at(eager).shape, 100, { device: deviceOf() }));
        add(at(own));
      }
      expect(values(own)).toEqual(values(eager));
    }
    expect(add.cache.misses).toBe(2);
  });

  it('has a specialization for each layout', () => {
    const f = compile((x: Tensor) => t.mul(x, x.isContiguous ? 2 : 3));
    const square = () => t.slice(base(1), 1, 0, 4);
    for (let call = 0; call < 2; call++) {
      const contiguous = t.contiguous(square());
      expect(values(f(contiguous))).toEqual(values(t.mul(contiguous, 2)));
      expect(values(f(square()))).toEqual(values(t.mul(square(), 3)));
      const turned = t.transpose(contiguous, 0, 1);
      expect(values(f(turned))).toEqual(values(t.mul(turned, 3)));
    }
    expect(f.cache.misses).toBe(3);
  });

  it('refuses a view that eager code refuses', () => {
    const f = compile((x: Tensor) => t.view(x, [x.size]));
    expect(() => f(t.transpose(base(0), 0, 1))).toThrow(t.ShapeError);
    expect(values(f(base(0)))).toHaveLength(20);
  });
}
