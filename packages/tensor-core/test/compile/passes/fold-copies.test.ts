import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { foldCopies } from '../../../src/compile/passes/fold-copies.ts';
import { pairCalls } from '../../../src/compile/passes/pair-calls.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';
import { expectSameBits, opNames, graphOf } from '../traced-graph.ts';

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
        ['neg', 'rope'],
        () => {
          const y = turned(q);
          const other = t.neg(k);
          return [merged(y), other];
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
      [
        'what it reads is overwritten before',
        () => {
          const x = t.mul(q, 2);
          const y = t.neg(x);
          t.fillInPlace(x, 0);
          return [t.contiguous(t.transpose(y, 1, 2)), x];
        },
      ],
      ['the copy is another op of that name', () => [t.apply(threefoldCopy, [t.neg(q)], undefined)[0]!]],
    ])('not where %s', (_, fn) => {
      const traced = graphOf(fn);
      const folded = foldCopies(traced.graph);
      expect(opNames(folded)).toEqual(opNames(traced.graph));
      expectSameBits(traced, folded);
    });
  },
);

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
