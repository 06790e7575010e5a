import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

const live = () => t.device('cpu').memoryStatistics().liveStorages;

describe('scope', () => {
  it('hands over what it returns, in arrays and plain objects too, and frees the rest', () => {
    const before = live();
    const result = t.scope(() => {
      t.ones([1]);
      return {
        a: t.ones([2]),
        list: [t.ones([3]), { b: t.ones([4]) }],
        bare: Object.assign(Object.create(null), { c: t.ones([5]) }),
      };
    });
    expect(live()).toBe(before + 4);
    const all = [
      result.a,
      result.list[0],
      (result.list[1] as { b: t.Tensor }).b,
      result.bare.c,
    ] as t.Tensor[];
    for (const tensor of all) tensor.dispose();
    expect(live()).toBe(before);
  });

  const refusals: [string, (fn: () => unknown) => unknown][] = [
    ['scope', t.scope],
    ['noGrad', t.noGrad],
    ['enableGrad', t.enableGrad],
    ['autocast', (fn) => t.autocast('bfloat16', fn)],
    ['withoutAutocast', t.withoutAutocast],
    ['range', (fn) => t.range('here', fn)],
    ['recordMemory', (fn) => t.recordMemory(fn)],
  ];

  it.each(refusals)('%s refuses async functions before they run, and promises after them', (name, run) => {
    const before = live();
    let ran = false;
    const asynchronous = async () => {
      ran = true;
      t.ones([2]);
    };
    expect(() => run(asynchronous)).toThrow(`${name}: the function is async`);
    expect(ran).toBe(false);
    expect(() => t.scope(() => run(() => Promise.reject(new Error('late'))))).toThrow(t.RooflineError);
    expect(() =>
      t.scope(() =>
        run(() => {
          t.ones([2]);
          return Promise.resolve(1);
        }),
      ),
    ).toThrow(`${name}: the function is async`);
    expect(live()).toBe(before);
    expect([t.isGradEnabled(), t.autocastDType(), t.currentRange()]).toEqual([true, null, []]);
  });

  it('frees what was made when its function throws, or returns a promise among other things', () => {
    const before = live();
    expect(() => t.scope(() => [t.ones([2]), Promise.resolve(1)])).toThrow('scope: the function is async');
    expect(() =>
      t.scope(() => {
        t.ones([2]);
        throw new Error('stop');
      }),
    ).toThrow('stop');
    expect(live()).toBe(before);
  });
});

describe('what a scope returns', () => {
  const leafWithGrad = () => {
    const x = t.tensor([1, 2], { requiresGrad: true });
    t.scope(() => t.sum(t.mul(x, x)).backward());
    return x;
  };

  it.each<[string, () => t.Tensor]>([
    ['alone', () => leafWithGrad().grad!],
    ['in a list', () => t.scope(() => [leafWithGrad().grad!])[0]!],
    ['kept', () => t.keep(leafWithGrad().grad!)],
    ['through two scopes', () => t.scope(() => t.scope(() => leafWithGrad().grad!))],
  ])('may be the gradient of a leaf that ends with it: %s', (_, give) => {
    const before = live();
    const grad = t.scope(give);
    expect(grad.toArray()).toEqual([2, 4]);
    grad.dispose();
    expect(live()).toBe(before);
  });

  it('leaves the gradient of a leaf that lives on with the leaf', () => {
    const before = live();
    const x = leafWithGrad();
    t.scope(() => {
      const grad = t.scope(() => x.grad!);
      expect(grad.isDisposed).toBe(false);
    });
    expect(x.grad!.toArray()).toEqual([2, 4]);
    const both = t.scope(() => {
      const y = leafWithGrad();
      return [y.grad!, y];
    });
    for (const leaf of [x, both[1]!]) leaf.dispose();
    expect(both[0]!.isDisposed).toBe(true);
    expect(live()).toBe(before);
  });

  it('may lead back to itself', () => {
    const before = live();
    interface Ring {
      x: t.Tensor;
      next?: Ring;
      all?: Ring[];
    }
    const ring = t.scope(() => {
      t.ones([1]);
      const [a, b]: Ring[] = [{ x: t.ones([2]) }, { x: t.ones([3]) }];
      a!.next = b;
      b!.next = a;
      b!.all = [a!, b!];
      return a!;
    });
    expect(live()).toBe(before + 2);
    expect(ring.next!.x.toArray()).toEqual([1, 1, 1]);
    for (const { x } of ring.next!.all!) x.dispose();
    expect(live()).toBe(before);
  });

  it('may be nested deeper than the call stack', () => {
    interface Link {
      x: t.Tensor;
      next: Link | null;
    }
    const before = live();
    const list = t.scope(() => {
      let first: Link | null = null;
      const x = t.ones([1]);
      for (let i = 0; i < 100_000; i++) first = { x, next: first };
      return first!;
    });
    expect(list.x.isDisposed).toBe(false);
    list.x.dispose();
    expect(live()).toBe(before);
  });
});
