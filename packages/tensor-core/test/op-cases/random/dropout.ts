import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { defaultGenerator } from '../../../src/tensor/random/generator.ts';
import { halvesOf, philox } from '../../../src/tensor/random/philox.ts';
import { sample, tensorOf } from '../support/samples.ts';
import { type OpenDevice, floatingPointDTypes } from '../support/vector-jacobian.ts';

/** The random words of the elements of a call. */
function wordsOf(count: number, seed: number, offset: number): number[] {
  const words = new Uint32Array(Math.ceil(count / 4) * 4);
  philox(words, offset, halvesOf(seed));
  return [...words.subarray(0, count)];
}

/** dropout on one device. The values of `cpu` are those that every device must give. */
export function describeDropout(open: OpenDevice, dtypes = floatingPointDTypes): void {
  // Not a multiple of four, and more than one block of the host or pass of the grid.
  const size = 40003;
  const seed = 2 ** 33 + 5;

  it('zeroes where the random word is below p, and scales the rest', () => {
    t.scope(() => {
      const x = sample([size], { domain: [1, 2], seed: 71 }, open());
      const values = x.toFlatArray();
      const y = t.dropout(x, { p: 0.3, generator: new t.Generator(seed, 9) }).toFlatArray();
      const words = wordsOf(size, seed, 9);
      const scale = Math.fround(1 / 0.7);
      expect(y).toEqual(
        values.map((value, i) => (words[i]! < Math.round(0.3 * 2 ** 32) ? 0 : Math.fround(value * scale))),
      );
      const kept = y.filter((value) => value !== 0).length / size;
      // Four standard deviations of a binomial share.
      expect(Math.abs(kept - 0.7)).toBeLessThan(4 * Math.sqrt((0.3 * 0.7) / size));
    });
  });

  it('keeps an element whose random word is p itself', () => {
    t.scope(() => {
      const [word] = wordsOf(1, 8, 0);
      const at = (p: number) =>
        t.dropout(t.ones([1], { device: open() }), { p, generator: new t.Generator(8) }).item();
      expect(at(word! / 2 ** 32)).toBeGreaterThan(0);
      expect(at((word! + 1) / 2 ** 32)).toBe(0);
    });
  });

  it.each(dtypes)('gives every device the same bits in %s', (dtype) => {
    t.scope(() => {
      const on = (device: t.Device) =>
        t
          .dropout(sample([999], { dtype, seed: 72 }, device), { p: 0.6, generator: new t.Generator(seed) })
          .toTypedArray();
      const here = on(open());
      expect(here).toEqual(on(t.device('cpu')));
      expect(here.some((value) => Number(value) !== 0)).toBe(true);
    });
  });

  it('zeroes and scales the gradient alike', () => {
    t.scope(() => {
      const x = t.ones([13, 7], { device: open() }).requiresGrad_();
      const y = t.dropout(x, { p: 0.25, generator: new t.Generator(3) });
      const g = sample([13, 7], { seed: 73 }, open());
      y.backward(g);
      const [mask, gradient] = [y.toFlatArray(), g.toFlatArray()];
      expect(mask).toContain(0);
      expect(x.grad!.toFlatArray()).toEqual(mask.map((factor, i) => Math.fround(gradient[i]! * factor)));
    });
  });

  it('keeps nothing for the backward pass', () => {
    t.scope(() => {
      const x = t.ones([64], { device: open() }).requiresGrad_();
      const y = t.dropout(x);
      expect(y.node!.saved).toEqual([]);
    });
  });

  it('takes strided and unaligned views by their own elements', () => {
    t.scope(() => {
      const x = sample([40, 9], { domain: [1, 2], seed: 74 }, open());
      const on = (view: t.Tensor) => t.dropout(view, { generator: new t.Generator(4) }).toFlatArray();
      const transposed = t.transpose(x);
      expect(on(transposed)).toEqual(on(t.contiguous(transposed)));
      const shifted = t.slice(t.reshape(x, [-1]), 0, 1);
      expect(on(shifted)).toEqual(on(t.copy(shifted)));
    });
  });

  it('draws its random words once per call', () => {
    t.scope(() => {
      const generator = new t.Generator(5, 2);
      const x = t.ones([10], { device: open() });
      const [first, second] = [t.dropout(x, { generator }), t.dropout(x, { generator })];
      expect(generator.offset).toBe(2 + 3 + 3);
      expect(first!.toFlatArray()).toEqual(t.dropout(x, { generator: new t.Generator(5, 2) }).toFlatArray());
      expect(second!.toFlatArray()).toEqual(t.dropout(x, { generator: new t.Generator(5, 5) }).toFlatArray());
      const before = defaultGenerator.offset;
      t.dropout(x);
      expect(defaultGenerator.offset).toBe(before + 3);
    });
  });

  it('leaves x as it is when not training, or when p is 0', () => {
    t.scope(() => {
      const generator = new t.Generator(6);
      const x = sample([2, 3], { seed: 75 }, open()).requiresGrad_();
      for (const options of [{ training: false }, { p: 0 }]) {
        const y = t.dropout(t.transpose(x), { ...options, generator });
        expect(y.toArray()).toEqual(t.transpose(x).toArray());
        y.backward(t.ones([3, 2], { device: open() }));
      }
      expect(x.grad!.toFlatArray()).toEqual([2, 2, 2, 2, 2, 2]);
      expect(generator.offset).toBe(0);
      const y = t.dropout(x, { training: false });
      y.dispose();
      expect(x.isDisposed).toBe(false);
    });
  });

  it('zeroes all for p = 1, NaN and infinities to NaN', () => {
    t.scope(() => {
      const x = tensorOf([1, -2, NaN, Infinity, 3], [5], 'float32', open()).requiresGrad_();
      const y = t.dropout(x, { p: 1 });
      expect(y.toArray()).toEqual([0, -0, NaN, NaN, 0]);
      y.backward(t.ones([5], { device: open() }));
      expect(x.grad!.toArray()).toEqual([0, 0, 0, 0, 0]);
    });
  });

  it('drops half by default', () => {
    t.scope(() => {
      const y = t
        .dropout(t.ones([4000], { device: open() }), { generator: new t.Generator(7) })
        .toFlatArray();
      expect(new Set(y)).toEqual(new Set([0, 2]));
      expect(Math.abs(y.filter((value) => value === 0).length - 2000)).toBeLessThan(4 * Math.sqrt(1000));
    });
  });

  it('takes empty tensors and scalars, and names what it does not take', () => {
    t.scope(() => {
      const options = { device: open() };
      expect(t.dropout(t.zeros([0, 3], options)).shape).toEqual([0, 3]);
      expect(t.dropout(t.ones([], options), { p: 1 }).toArray()).toBe(0);
      const x = t.zeros([2], options);
      for (const p of [-0.1, 1.1, NaN])
        expect(() => t.dropout(x, { p })).toThrow('dropout: p must be a probability');
      expect(() => t.dropout(t.cast(x, 'int64'), { p: 0 })).toThrow('dropout: x must be floating-point');
      expect(() => t.dropout(x, { train: false } as never)).toThrow('dropout: there is no option "train"');
    });
  });
}
