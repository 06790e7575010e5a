import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { fusePointwise } from '../../../src/compile/passes/fuse-pointwise.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

describe('fusePointwise', () => {
  const x = t.tensor([[1, 2, 3], [4, 5, 6]]); // prettier-ignore
  const row = t.tensor([1, 2, 3]);

  it('makes one op of a chain with broadcasts and casts', () => {
    const { graph } = graphOf(() => [t.relu(t.cast(t.add(t.mul(x, row), 1), 'bfloat16'))]);
    expect(opNames(fusePointwise(graph))).toEqual(['fused_mul_add_cast_relu']);
    expect(fusePointwise(graph).calls[0]!.inputs).toHaveLength(2);
  });

  it('keeps what others use as a further output', () => {
    const { graph } = graphOf(() => {
      const doubled = t.mul(x, 2);
      return [t.relu(doubled), doubled];
    });
    const [call] = fusePointwise(graph).calls;
    expect(call!.op.name).toBe('fused_mul_relu');
    expect(call!.outputs).toHaveLength(2);
  });

  it('ends at what is not an element-wise op of its values, at another shape, and at another layout', () => {
    const around = graphOf(() => [t.neg(t.sum(t.relu(t.mul(x, 2)), { dims: 0 }))]).graph;
    expect(opNames(fusePointwise(around))).toEqual(['fused_mul_relu', 'sum', 'neg']);
    const shapes = graphOf(() => [t.relu(x), t.relu(row)]).graph;
    expect(opNames(fusePointwise(shapes))).toEqual(['relu', 'relu']);
    const turned = graphOf(() => [t.relu(t.transpose(t.relu(x), 0, 1))]).graph;
    expect(opNames(fusePointwise(turned))).toEqual(['relu', 'relu']);
  });

  it('lets calls pass that have nothing to do with it', () => {
    const { graph } = graphOf(() => {
      const doubled = t.mul(x, 2);
      const total = t.sum(row);
      return [t.relu(doubled), total];
    });
    expect(opNames(fusePointwise(graph))).toEqual(['sum', 'fused_mul_relu']);
  });

  it('leaves live attributes, empty tensors and other compute types alone', () => {
    const mixed = graphOf(() => [t.relu(t.cast(t.relu(x), 'float64'))]).graph;
    expect(opNames(fusePointwise(mixed))).toEqual(['relu', 'fused_cast_relu']);
    const empty = graphOf(() => [t.relu(t.relu(t.zeros([0])))]).graph;
    expect(opNames(fusePointwise(empty))).toEqual(['relu', 'relu']);
  });
});

describe.skipIf(hostCompilerVersion() === null)('fused kernels on an emulated GPU', () => {
  const device = openEmulatedDevice();
  const x = t.randn([3, 5], { device, generator: new t.Generator(1) });
  const column = t.randn([3, 1], { device, generator: new t.Generator(2) });

  it.each([
    ['rounded values', () => [t.mul(t.cast(t.add(t.mul(x, column), 0.1), 'bfloat16'), 3)]],
    ['a comparison', () => [t.mul(t.cast(t.greater(t.mul(x, 2), column), 'float32'), x)]],
    [
      'writes in place',
      () => {
        const y = t.mul(x, 2);
        t.addInPlace(y, t.expand(column, [3, 5]));
        t.addInPlace(y, t.mul(y, x));
        return [y, t.neg(y)];
      },
    ],
    [
      'transposed and repeated inputs',
      () => [t.relu(t.add(t.transpose(x, 0, 1), t.mul(t.expand(t.transpose(column, 0, 1), [5, 3]), 2)))],
    ],
  ] as [string, () => Tensor[]][])('give the bits of separate ones: %s', (_, fn) => {
    const traced = graphOf(fn);
    const fused = fusePointwise(traced.graph);
    expect(fused.calls.length).toBeLessThan(traced.graph.calls.length);
    expectSameBits(traced, fused);
  });

  it('give the bits of a custom op that names intermediate values', () => {
    const shift = t.defineOp<{ by: number }>({
      name: 'shift',
      autocast: 'none',
      infer: ([input]) => [input!],
      scalars: ({ by }) => [by],
      cuda: {
        kind: 'pointwise',
        values: () => [
          { name: 'shifted', dtype: 'bfloat16', text: 'a + s0' },
          { name: 'both', dtype: 'float32', text: 'shifted * b' },
        ],
        expressions: () => ['both + shifted'],
      },
      variant: () => '',
      cpu: { kind: 'host', run: () => {} },
    });
    const shifted = (y: Tensor, by: number) => t.apply(shift, [y, y], { by })[0]!;
    const traced = graphOf(() => [shifted(shifted(t.mul(x, 3), 0.1), 0.7)]);
    const fused = fusePointwise(traced.graph);
    expect(opNames(fused)).toEqual(['fused_mul_shift_shift']);
    expectSameBits(traced, fused);
  });
});
