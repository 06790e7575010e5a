import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { foldCopies } from '../../../src/compile/passes/fold-copies.ts';
import { pairCalls } from '../../../src/compile/passes/pair-calls.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { NotedOrder, tell } from '../ordered-effects-op.ts';
import { type TracedGraph, expectSameBits, opNames, graphOf } from '../traced-graph.ts';

const [batch, length, heads, dimension] = [2, 3, 2, 4];
const tokens = [batch, length, heads, dimension];
const tables = (device: t.Device) =>
  [1, 2].map((seed) => t.randn([length, dimension / 2], { device, generator: new t.Generator(seed) })) as [
    Tensor,
    Tensor,
  ];

/** Copies nothing, despite its name. */
const threefoldCopy = t.defineOp({
  name: 'copy',
  autocast: 'none',
  infer: ([x]) => [x!],
  cuda: { kind: 'pointwise', expressions: () => ['a * 3'] },
  cpu: { kind: 'host', run: () => {} },
});

/** From [batch, heads, length, dimension] to adjacent heads, by a copy. */
const merged = (x: Tensor) => t.reshape(t.transpose(x, 1, 2), [batch, length, heads * dimension]);

describe.skipIf(hostCompilerVersion() === null)(
  'copies folded into the calls that make what they copy',
  () => {
    const device = openEmulatedDevice();
    const random = (shape: readonly number[], seed: number) =>
      t.randn(shape, { device, generator: new t.Generator(seed) });
    const [q, k] = [random(tokens, 3), random(tokens, 4)];
    const [cosine, sine] = tables(device);
    const turned = (x: Tensor) => t.rope(t.transpose(x, 1, 2), cosine, sine);

    it.each<[string, string[], () => Tensor[]]>([
      ['of a rotation', ['rope'], () => [merged(turned(q))]],
      [
        'of an element-wise op',
        ['mul'],
        () => [merged(t.mul(t.view(q, [batch, heads, length, dimension]), 2))],
      ],
      [
        'of one that stands behind other calls',
        ['rope', 'neg'],
        () => {
          const y = turned(q);
          const other = t.neg(k);
          return [merged(y), other];
        },
      ],
      [
        'of one whose operand is overwritten before the copy',
        ['mul', 'neg', 'fill_'],
        () => {
          const x = t.mul(q, 2);
          const y = t.neg(x);
          t.fillInPlace(x, 0);
          return [t.contiguous(t.transpose(y, 1, 2)), x];
        },
      ],
      [
        'behind dimensions that were joined',
        ['mul'],
        () => [t.contiguous(t.transpose(t.reshape(t.mul(q, 2), [batch * length, heads, dimension]), 0, 1))],
      ],
    ])('%s', (_, names, fn) => {
      const traced = graphOf(fn);
      const folded = foldCopies(traced.graph);
      expect(opNames(traced.graph)).toContain('copy');
      expect(opNames(folded)).toEqual(names);
      expectSameBits(traced, folded);
    });

    it.each<[string, () => Tensor[]]>([
      [
        'others read the original',
        () => {
          const y = turned(q);
          return [merged(y), t.neg(y)];
        },
      ],
      [
        'the original is a result',
        () => {
          const y = turned(q);
          return [merged(y), y];
        },
      ],
      ['a part is copied', () => [t.contiguous(t.slice(t.transpose(turned(q), 1, 2), 1, 0, 2))]],
      ['rows become columns', () => [t.contiguous(t.transpose(t.mul(q, 2), 2, 3))]],
      ['the writer takes no strides', () => [t.contiguous(t.transpose(t.softmax(q, -1), 1, 2))]],
      ['the copy is another op of that name', () => [t.apply(threefoldCopy, [t.neg(q)], undefined)[0]!]],
    ])('not where %s', (_, fn) => {
      const traced = graphOf(fn);
      const folded = foldCopies(traced.graph);
      expect(opNames(folded)).toEqual(opNames(traced.graph));
      expectSameBits(traced, folded);
    });
  },
);

describe.skipIf(hostCompilerVersion() === null)('copies over other tensors', () => {
  const device = openEmulatedDevice();
  const random = (shape: readonly number[], seed: number, dtype: t.DType = 'float32') =>
    t.cast(t.randn(shape, { device, generator: new t.Generator(seed) }), dtype);
  const [a, b] = [random([4, 8], 1), random([8, 16], 2)];
  const table = random([32], 3);
  const narrow = random([4, 16], 5, 'bfloat16');
  const start = random([4, 16], 6);
  const [flat, before] = [t.zeros([256], { device }), random([256], 4)];
  /** Elements [start, start + 64) of a buffer that the programs find. */
  const part = (start: number, shape: readonly number[] = [4, 16]) =>
    t.view(t.slice(flat, 0, start, start + 64), shape);
  /** The program on the same contents of the buffer in each run, and what it leaves there. */
  const tracedOnBuffer = (fn: () => readonly Tensor[]) =>
    graphOf(() => {
      t.copyInPlace(flat, before);
      return [...fn(), t.neg(flat)];
    });
  const copies = (graph: TracedGraph['graph']) =>
    opNames(graph).filter((name) => name === 'copy_').length - 1;

  it.each<[string, string[], () => Tensor[]]>([
    ['of a product', ['matmul'], () => (t.copyInPlace(part(64), t.matmul(a, b)), [])],
    ['of a softmax', ['softmax'], () => (t.copyInPlace(part(16), t.softmax(part(192), -1)), [])],
    [
      'into a part of a tensor that was made before',
      ['fill_', 'matmul', 'neg'],
      () => {
        const made = t.zeros([128], { device });
        t.copyInPlace(t.view(t.slice(made, 0, 64), [4, 16]), t.matmul(a, b));
        return [t.neg(made)];
      },
    ],
    ['of an element-wise op', ['neg'], () => (t.copyInPlace(part(0), t.neg(part(64))), [])],
    [
      'of two neighbours that are both made before the first copy',
      ['matmul', 'neg'],
      () => {
        const product = t.matmul(a, b);
        const other = t.neg(part(192));
        t.copyInPlace(part(0), product);
        t.copyInPlace(part(64), other);
        return [];
      },
    ],
  ])('%s', (_, names, fn) => {
    const traced = tracedOnBuffer(fn);
    const folded = foldCopies(traced.graph);
    expect(copies(traced.graph)).toBeGreaterThan(0);
    expect(opNames(folded)).toEqual(['copy_', ...names, 'neg']);
    expectSameBits(traced, folded);
  });

  it('into memory that nothing has used before, if the program does not make it', () => {
    const { graph } = graphOf(() => (t.copyInPlace(part(64), t.matmul(a, b)), []));
    expect(opNames(foldCopies(graph))).toEqual(['matmul']);
  });

  it.each<[string, () => Tensor[]]>([
    ['its maker is a collective', () => (t.copyInPlace(part(0), tell(start, new NotedOrder())), [])],
    ['the copy casts a product of float32', () => (t.copyInPlace(narrow, t.matmul(a, b)), [])],
    [
      'an address is no multiple of what kernels write at once',
      () => (t.copyInPlace(part(1), t.matmul(a, b)), []),
    ],
    ['the copy casts', () => (t.copyInPlace(t.view(table, [4, 8]), t.neg(t.cast(a, 'bfloat16'))), [])],
    ['the maker reads what is overwritten', () => (t.copyInPlace(part(0), t.mul(part(32), 2)), [])],
    [
      'more memory would be needed when it is made',
      () => {
        const product = t.matmul(a, b);
        const made = t.empty([128], { device });
        t.copyInPlace(t.view(t.slice(made, 0, 0, 64), [4, 16]), product);
        t.fillInPlace(t.slice(made, 0, 64), 0);
        return [made];
      },
    ],
    [
      'what is overwritten is read before',
      () => {
        const product = t.matmul(a, b);
        const old = t.neg(flat);
        t.copyInPlace(part(0), product);
        return [old];
      },
    ],
    [
      'it is written before',
      () => {
        const product = t.matmul(a, b);
        t.fillInPlace(flat, 3);
        t.copyInPlace(part(0), product);
        return [];
      },
    ],
    [
      'another copy of it is wanted',
      () => {
        const product = t.matmul(a, b);
        t.copyInPlace(part(0), product);
        return [t.neg(product)];
      },
    ],
    [
      'the original is a result',
      () => {
        const product = t.matmul(a, b);
        t.copyInPlace(part(0), product);
        return [product];
      },
    ],
    [
      'it lies in the same memory',
      () => {
        const both = t.zeros([2, 4, 16], { device });
        t.copyInPlace(t.select(both, 0, 0), t.matmul(a, b));
        t.copyInPlace(t.select(both, 0, 1), t.select(both, 0, 0));
        return [both];
      },
    ],
    [
      'its maker overwrites something',
      () => {
        const sum = t.zeros([4, 16], { device });
        t.addInPlace(sum, part(128));
        t.copyInPlace(part(0), sum);
        return [];
      },
    ],
  ])('not where %s', (_, fn) => {
    const traced = tracedOnBuffer(fn);
    const folded = foldCopies(traced.graph);
    expect(copies(traced.graph)).toBeGreaterThan(0);
    expect(copies(folded)).toBe(1);
    expectSameBits(traced, folded);
  });
});

describe.skipIf(hostCompilerVersion() === null)('rotations in pairs', () => {
  const device = openEmulatedDevice();
  const random = (shape: readonly number[], seed: number) =>
    t.randn(shape, { device, generator: new t.Generator(seed) });
  const joint = random([batch, length, 3, heads, dimension], 5);
  const [cosine, sine] = tables(device);
  const [q, k, v] = [0, 1, 2].map((i) => t.transpose(t.select(joint, 2, i), 1, 2)) as [
    Tensor,
    Tensor,
    Tensor,
  ];

  const dense = t.contiguous(q);

  it.each<[string, string[], () => Tensor[]]>([
    [
      'one that can run earlier',
      ['fused_rope_rope', 'neg'],
      () => {
        const y = t.rope(q, cosine, sine);
        return [t.neg(y), t.rope(k, cosine, sine)];
      },
    ],
    [
      'one that can wait',
      ['neg', 'fused_rope_rope'],
      () => {
        const y = t.rope(dense, cosine, sine);
        return [y, t.rope(t.neg(dense), cosine, sine)];
      },
    ],
    [
      'two pairs of four',
      ['fused_rope_rope', 'fused_rope_rope'],
      () => [q, k, v, q].map((x) => t.rope(x, cosine, sine)),
    ],
    ['with their copies', ['fused_rope_rope'], () => [q, k].map((x) => merged(t.rope(x, cosine, sine)))],
  ])('%s', (_, names, fn) => {
    const traced = graphOf(fn);
    const paired = pairCalls(foldCopies(traced.graph));
    expect(opNames(paired)).toEqual(names);
    expectSameBits(traced, paired);
  });

  it('not where one rotates what the other made, by other angles, or another layout', () => {
    for (const second of [
      (y: Tensor) => t.rope(y, cosine, sine),
      () => t.rope(k, sine, cosine),
      () => t.rope(t.contiguous(k), cosine, sine),
      () => t.rope(t.cast(k, 'float64'), cosine, sine),
      () => t.rope(t.slice(k, 0, 0, 1), cosine, sine),
    ]) {
      const traced = graphOf(() => {
        const y = t.rope(q, cosine, sine);
        return [y, second(y)];
      });
      expect(opNames(pairCalls(traced.graph))).not.toContain('fused_rope_rope');
    }
  });

  it('not of a rotation and its inverse, nor of results of another layout', () => {
    const leaf = t.copy(dense).requiresGrad_();
    const turned = t.rope(leaf, cosine, sine);
    const [above, other] = [t.mul(dense, 2), t.mul(dense, 3)];
    const back = graphOf(() => {
      const y = t.rope(other, cosine, sine);
      turned.backward(above);
      return [y, leaf.grad!.detach()];
    });
    expect(opNames(pairCalls(back.graph)).filter((name) => name === 'rope')).toHaveLength(2);
    const folded = graphOf(() => [merged(t.rope(q, cosine, sine)), t.rope(k, cosine, sine)]);
    expect(opNames(pairCalls(foldCopies(folded.graph)))).toEqual(['rope', 'rope']);
  });

  it('of writes to caches, but not from one of them', () => {
    const index = t.tensor([1, 0], { device, dtype: 'int64' });
    const [first, second, rows] = [random([6, 8], 8), random([6, 8], 9), random([2, 8], 10)];
    const written = (source: (cache: Tensor) => Tensor) =>
      graphOf(() => {
        const both = [t.mul(first, 2), t.mul(second, 2)] as const;
        const sources = both.map(source);
        t.indexCopyInPlace(t.slice(both[0], 0, 0, 4), 0, index, sources[0]!);
        t.indexCopyInPlace(t.slice(both[1], 0, 0, 4), 0, index, sources[1]!);
        return both;
      });
    const names = (traced: ReturnType<typeof graphOf>) => {
      const paired = pairCalls(traced.graph);
      expectSameBits(traced, paired);
      return opNames(paired).filter((name) => /indexCopy|index_copy/.test(name));
    };
    expect(names(written(() => rows))).toHaveLength(1);
    expect(names(written((cache) => t.slice(cache, 0, 4, 6)))).toHaveLength(2);
  });
});
