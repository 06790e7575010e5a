import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { describeOnDevices } from '../../op-cases/support/devices.ts';

describeOnDevices((open) => {
  const numbers = (...shape: number[]) =>
    t.reshape(t.arange(0, t.sizeOf(shape), 1, { device: open(), dtype: 'float32' }), shape);

  it.each<[number[], number[]]>([
    [[0], [0, 1, 2, 3, 4, 5, 6]],
    [[2], [2, 3, 4, 5, 6]],
    [
      [2, 5],
      [2, 3, 4],
    ],
    [[-2], [5, 6]],
    [
      [-100, 2],
      [0, 1],
    ],
    [
      [0, -1],
      [0, 1, 2, 3, 4, 5],
    ],
    [
      [0, 100],
      [0, 1, 2, 3, 4, 5, 6],
    ],
    [[5, 2], []],
    [[7], []],
    [[100, 200], []],
    [
      [0, 7, 2],
      [0, 2, 4, 6],
    ],
    [
      [0, 6, 2],
      [0, 2, 4],
    ],
    [
      [1, 7, 2],
      [1, 3, 5],
    ],
    [
      [1, 6, 3],
      [1, 4],
    ],
    [[1, 4, 3], [1]],
    [
      [1, 5, 3],
      [1, 4],
    ],
    [[0, 7, 100], [0]],
  ])('slices %j as Python does, and spreads the gradient', (arguments_, values) => {
    t.scope(() => {
      const x = numbers(7).detach().requiresGrad_();
      const y = t.slice(x, 0, ...(arguments_ as [number]));
      expect([y.shape, y.toFlatArray()]).toEqual([[values.length], values]);
      t.sum(t.mul(y, y)).backward();
      expect(x.grad!.toFlatArray()).toEqual(x.toFlatArray().map((v) => (values.includes(v) ? 2 * v : 0)));
    });
  });

  it('slices inner and outer dimensions, with gradients', () => {
    t.scope(() => {
      const x = numbers(3, 4, 2).detach().requiresGrad_();
      const y = t.slice(x, 1, 1, 4, 2);
      expect(y.toFlatArray()).toEqual([2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23]);
      t.sum(t.mul(y, y)).backward();
      expect(x.grad!.toFlatArray()).toEqual(
        x.toFlatArray().map((v) => (v % 8 >= 2 && v % 4 >= 2 ? 2 * v : 0)),
      );
      expect(t.slice(t.transpose(x, 0, 2), -1, -1).toFlatArray()).toEqual([16, 18, 20, 22, 17, 19, 21, 23]);
    });
  });

  it('selects from either end', () => {
    t.scope(() => {
      const x = numbers(2, 3);
      expect(t.select(x, 0, 1).toFlatArray()).toEqual([3, 4, 5]);
      expect(t.select(x, -1, -3).toFlatArray()).toEqual([0, 3]);
      expect(t.select(x, 1, 2).shape).toEqual([2]);
      expect(t.select(numbers(1), 0, 0).shape).toEqual([]);
      for (const index of [2, -3, 0.5, NaN, '1' as never, undefined as never]) {
        expect(() => t.select(x, 0, index)).toThrow(
          `select: index ${index} is outside dimension 0 of [2, 3]`,
        );
      }
    });
  });

  it('reshapes, flattens and transposes, and takes gradients back', () => {
    t.scope(() => {
      const x = numbers(2, 3).detach().requiresGrad_();
      const y = t.reshape(t.transpose(x), [-1]);
      expect(y.toFlatArray()).toEqual([0, 3, 1, 4, 2, 5]);
      t.sum(t.mul(y, t.tensor([1, 2, 3, 4, 5, 6], { device: open() }))).backward();
      expect(x.grad!.toFlatArray()).toEqual([1, 3, 5, 2, 4, 6]);
      expect(t.permute(numbers(2, 3, 4), [-1, 0, 1]).shape).toEqual([4, 2, 3]);
      expect(t.transpose(numbers(2, 3, 4), 0, -1).shape).toEqual([4, 3, 2]);
      expect(
        t
          .reshape(t.slice(numbers(4, 6), 1, 0, 3), [2, 6])
          .toFlatArray()
          .slice(0, 6),
      ).toEqual([0, 1, 2, 6, 7, 8]);
      expect(() => t.view(t.transpose(x), [6])).toThrow(
        'cannot be seen as [6] without a copy; use reshape()',
      );
    });
  });

  it.each(['reshape', 'view', 'expand'] as const)('%s keeps a shape of its own', (name) => {
    t.scope(() => {
      const x = t.ones([2, 3], { device: open(), requiresGrad: true });
      const shape = name === 'expand' ? [2, 2, 3] : [3, 2];
      const given = [...shape];
      const y = t[name](x, given);
      given.fill(9);
      expect(y.shape).toEqual(shape);
      t.sum(y).backward();
      expect(x.grad!.shape).toEqual([2, 3]);
    });
  });

  it('expands, and sums the gradient back', () => {
    t.scope(() => {
      const x = numbers(2, 1).detach().requiresGrad_();
      const y = t.expand(x, [3, -1, 2]);
      expect([y.shape, y.toFlatArray()]).toEqual([
        [3, 2, 2],
        [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1],
      ]);
      y.backward(t.reshape(t.arange(0, 12, 1, { device: open(), dtype: 'float32' }), [3, 2, 2]));
      expect(x.grad!.toFlatArray()).toEqual([0 + 1 + 4 + 5 + 8 + 9, 2 + 3 + 6 + 7 + 10 + 11]);
      expect(t.expand(t.tensor(5, { device: open() }), [0, 2]).shape).toEqual([0, 2]);
    });
  });

  it('takes scalars and empty tensors', () => {
    t.scope(() => {
      const scalar = t.tensor(5, { device: open() });
      expect(t.squeeze(scalar, 0).shape).toEqual([]);
      expect(t.squeeze(scalar, -1).item()).toBe(5);
      expect(t.transpose(scalar, 0, -1).item()).toBe(5);
      expect(t.unsqueeze(scalar, -1).shape).toEqual([1]);
      expect(t.reshape(scalar, [-1]).toFlatArray()).toEqual([5]);
      expect(t.permute(scalar, []).item()).toBe(5);
      const empty = t.zeros([3, 0], { device: open() });
      expect(t.transpose(empty).shape).toEqual([0, 3]);
      expect(t.reshape(empty, [0, 7]).toFlatArray()).toEqual([]);
      expect(t.reshape(t.transpose(empty), [0]).toFlatArray()).toEqual([]);
      expect(t.slice(empty, 0, 1).shape).toEqual([2, 0]);
      expect(t.squeeze(numbers(2, 1), 0).shape).toEqual([2, 1]);
      expect(t.squeeze(numbers(2, 1), 1).shape).toEqual([2]);
      expect(t.unsqueeze(numbers(2), 1).shape).toEqual([2, 1]);
    });
  });

  describe('joins', () => {
    it.each([0, 1, -1])('different tensors along dimension %i, and cuts the gradient', (dimension) => {
      t.scope(() => {
        const device = open();
        const shapes =
          dimension === 0
            ? [
                [1, 2],
                [3, 2],
                [0, 2],
              ]
            : [
                [2, 1],
                [2, 3],
                [2, 0],
              ];
        const leaves = shapes.map((shape, i) =>
          t
            .add(t.reshape(t.arange(0, t.sizeOf(shape), 1, { device, dtype: 'float32' }), shape), 10 * i)
            .detach()
            .requiresGrad_(),
        );
        const y = t.concat(leaves, dimension);
        const expected = dimension === 0 ? [0, 1, 10, 11, 12, 13, 14, 15] : [0, 10, 11, 12, 1, 13, 14, 15];
        expect(y.toFlatArray()).toEqual(expected);
        t.sum(t.mul(y, y)).backward();
        for (const leaf of leaves)
          expect(leaf.grad!.toFlatArray()).toEqual(leaf.toFlatArray().map((v) => 2 * v));
      });
    });

    it('after [0], which fits everywhere, as in torch.cat', () => {
      t.scope(() => {
        const device = open();
        const [start, x] = [t.zeros([0], { device }).requiresGrad_(), numbers(2, 2).requiresGrad_()];
        for (const dimension of [0, 1, -1]) {
          expect(t.concat([start, x], dimension).toArray()).toEqual([
            [0, 1],
            [2, 3],
          ]);
        }
        expect(t.concat([start, t.zeros([0, 3], { device })]).shape).toEqual([0, 3]);
        expect(t.concat([start, start]).shape).toEqual([0]);
        expect(t.concat([x, t.zeros([0], { device, dtype: 'float64' })]).dtype).toBe('float64');
        t.sum(t.concat([start, x, start])).backward();
        expect([start.grad!.shape, x.grad!.toFlatArray()]).toEqual([[0], [1, 1, 1, 1]]);
        expect(() => t.concat([start, x], 2)).toThrow('dimension 2');
      });
    });

    it('strided views', () => {
      t.scope(() => {
        const x = numbers(2, 3);
        expect(t.concat([t.transpose(x), t.slice(numbers(4, 4), 1, 1, 3)]).toFlatArray()).toEqual([
          0, 3, 1, 4, 2, 5, 1, 2, 5, 6, 9, 10, 13, 14,
        ]);
      });
    });

    it('along a new dimension', () => {
      t.scope(() => {
        const [a, b] = [numbers(2), t.add(numbers(2), 10)];
        expect(t.stack([a, b]).toFlatArray()).toEqual([0, 1, 10, 11]);
        expect(t.stack([a, b], 1).toFlatArray()).toEqual([0, 10, 1, 11]);
        expect(t.stack([a, b], -1).shape).toEqual([2, 2]);
        expect(
          t.stack([t.tensor(1, { device: open() }), t.tensor(2, { device: open() })]).toFlatArray(),
        ).toEqual([1, 2]);
      });
    });
  });
});

describe('invalid arguments', () => {
  const x = t.tensor([[1, 2, 3]]);
  const scalar = t.tensor(5);
  const any = (value: unknown) => value as never;
  it.each<[string, () => Tensor, string]>([
    [
      'a fraction to start at',
      () => t.slice(x, 1, 0.5, 2.5),
      'slice: the start must be a whole number, not 0.5',
    ],
    ['a fraction to end at', () => t.slice(x, 1, 0, 2.5), 'slice: the end must be a whole number, not 2.5'],
    ['NaN', () => t.slice(x, 1, NaN), 'slice: the start must be a whole number, not NaN'],
    ['infinity', () => t.slice(x, 1, 0, Infinity), 'slice: the end must be a whole number'],
    ['a text', () => t.slice(x, 1, any('1')), 'slice: the start must be a whole number, not the text "1"'],
    [
      'a step of 0',
      () => t.slice(x, 1, 0, 2, 0),
      'slice: the step must be a whole number of one or more, got 0',
    ],
    ['a fraction of a step', () => t.slice(x, 1, 0, 2, 0.5), 'got 0.5'],
    ['a step that is NaN', () => t.slice(x, 1, 0, 2, NaN), 'got NaN'],
    ['a dimension too many', () => t.slice(x, 2), 'slice: dimension 2 is outside a tensor of rank 2'],
    [
      'a slice of a scalar',
      () => t.slice(scalar, 0),
      'slice: a tensor without dimensions has no dimension 0',
    ],
    ['half a dimension', () => t.select(x, 0.5, 0), 'select: dimension 0.5'],
    [
      'a vector to transpose',
      () => t.transpose(t.tensor([1])),
      'transpose: dimension -2 is outside a tensor of rank 1',
    ],
    ['a scalar to transpose', () => t.transpose(scalar), 'transpose: dimension -2 is outside'],
    ['an order of fractions', () => t.permute(x, [0, 0.5]), 'permute: dimension 0.5'],
    ['an order that repeats', () => t.permute(x, [0, 0]), 'must name each dimension of [1, 3] exactly once'],
    ['an order too short', () => t.permute(x, [0]), 'must name each dimension'],
    ['no order', () => t.permute(x, any(1)), 'permute: takes a list of whole numbers'],
    [
      'a shape of NaN',
      () => t.reshape(x, [NaN]),
      'reshape: [1, 3] has 3 elements and cannot take the shape [NaN]',
    ],
    ['a shape of fractions', () => t.reshape(x, [1.5, 2]), 'cannot take the shape [1.5, 2]'],
    ['two unknown lengths', () => t.reshape(x, [-1, -1]), 'cannot take the shape'],
    ['other sizes', () => t.reshape(x, [2, -1]), 'cannot take the shape [2, -1]'],
    ['negative lengths', () => t.reshape(x, [-3, -1]), 'cannot take the shape [-3, -1]'],
    ['an undecided length', () => t.reshape(t.zeros([0, 3]), [-1, 0]), 'cannot take the shape [-1, 0]'],
    ['no shape', () => t.reshape(x, any(3)), 'reshape: takes a list of whole numbers'],
    ['no shape to view', () => t.view(x, any(undefined)), 'view: takes a list of whole numbers'],
    ['a new length of -1', () => t.expand(x, [-1, 1, 3]), 'expand: [-1, 1, 3] is no shape'],
    ['a length of NaN', () => t.expand(x, [NaN, 3]), 'expand: [NaN, 3] is no shape'],
    ['another length', () => t.expand(x, [1, 4]), 'expand: [1, 3] does not broadcast to [1, 4]'],
    ['fewer dimensions', () => t.expand(x, [3]), 'expand: [1, 3] does not broadcast to [3]'],
    ['no list of lengths', () => t.expand(x, any(3)), 'expand: takes a list'],
    ['a dimension of a scalar', () => t.squeeze(scalar, 1), 'squeeze: dimension 1 is outside'],
    ['a dimension too far', () => t.unsqueeze(x, 3), 'unsqueeze: dimension 3 is outside'],
    ['a list to slice', () => t.slice(any([1, 2]), 0), 'slice: takes tensors, not an array'],
    ['nothing to reshape', () => t.reshape(any(undefined), [1]), 'reshape: takes tensors, not undefined'],
    ['nothing to join', () => t.concat([]), 'concat: takes a list of at least one tensor'],
    ['a tensor to join', () => t.concat(any(x)), 'concat: takes a list of at least one tensor'],
    ['a number to join', () => t.concat([x, any(1)]), 'concat: takes tensors, not 1'],
    ['scalars to join', () => t.concat([scalar, scalar]), 'concat: a tensor without dimensions'],
    [
      'shapes that do not fit',
      () => t.concat([x, t.zeros([2, 2])]),
      'concat: [2, 2] does not fit behind [1, 3]',
    ],
    ['ranks that do not fit', () => t.concat([x, t.zeros([3])]), 'concat: [3] does not fit behind [1, 3]'],
    ['shapes to stack', () => t.stack([x, t.zeros([3])]), 'stack: [1, 3] and [3] differ'],
    [
      'a dimension to stack along',
      () => t.stack([x, x], 3),
      'stack: dimension 3 is outside a tensor of rank 3',
    ],
    ['nothing to stack', () => t.stack([]), 'stack: takes a list of at least one tensor'],
  ])('%s', (_, fn, message) => {
    t.scope(() => expect(fn).toThrow(message));
    t.scope(() => expect(fn).toThrow(t.RooflineError));
  });
});
