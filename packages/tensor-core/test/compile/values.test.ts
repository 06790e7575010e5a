import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Tensor, compile } from '../../src/index.ts';

const values = (x: Tensor) => x.toFlatArray();

/** What `f` gives for each of these arguments, twice in turn, and how often it was traced. */
function misses(given: readonly unknown[]): number {
  const f = compile((...[x]: [Tensor, unknown]) => t.mul(x, 2));
  for (let round = 0; round < 2; round++) for (const each of given) f(t.ones([1]), each);
  return f.cache.misses;
}

class Scale {
  readonly #factor: number;
  constructor(factor: number) {
    this.#factor = factor;
  }
  of(x: Tensor): Tensor {
    return t.mul(x, this.#factor);
  }
}

describe('arguments', () => {
  it('of other types are told apart, though they print alike', () => {
    expect(misses([2, '2', 2n, [2], ['2'], { 0: 2 }, null, 'null', undefined, 'undefined'])).toBe(10);
    expect(misses([0, -0, NaN, 0n, false, ''])).toBe(6);
    expect(() => misses([Symbol('key')])).toThrow(CompileError);
  });

  it('are told apart by the bytes of shared memory', () => {
    const shared = new SharedArrayBuffer(2);
    expect(misses([shared, new ArrayBuffer(2), { inner: shared }])).toBe(2);
    const f = compile((x: Tensor, bytes: SharedArrayBuffer) => t.mul(x, new Uint8Array(bytes)[0]!));
    expect(values(f(t.ones([1]), shared))).toEqual([0]);
    new Uint8Array(shared)[0] = 7;
    expect(values(f(t.ones([1]), shared))).toEqual([7]);
  });

  it('reach the function as they are, instances of classes and objects without a prototype too', () => {
    const bare: { x?: Tensor } = Object.assign(Object.create(null), { x: t.tensor([1, 2]) });
    const scale = new Scale(3);
    const f = compile((given: { x?: Tensor }, by: Scale, no: null) => (no === null ? by.of(given.x!) : null));
    for (let call = 0; call < 3; call++) {
      bare.x = t.tensor([call, 2]);
      expect(values(f(bare, scale, null)!)).toEqual([3 * call, 6]);
    }
    expect(f.cache).toMatchObject({ misses: 1, hits: 2 });
  });

  it.each<
    [string, (w: Tensor) => ReadonlyMap<string, unknown>, (map: ReadonlyMap<string, unknown>) => Tensor]
  >([
    ['a map', (w) => new Map([['w', w]]), (map) => map.get('w') as Tensor],
    ['an array in a map', (w) => new Map([['w', [w]]]), (map) => (map.get('w') as Tensor[])[0]!],
  ])('by a tensor in %s, which replays do not exchange', (_, wrap, unwrap) => {
    const f = compile((x: Tensor, map: ReadonlyMap<string, unknown>) => t.mul(x, unwrap(map)));
    const [two, five] = [t.full([1], 2), t.full([1], 5)];
    const seen = [two, two, five, five, two].map((w) => f(t.ones([1]), wrap(w)).item());
    expect(seen).toEqual([2, 2, 5, 5, 2]);
    expect(f.cache).toMatchObject({ misses: 2, hits: 3 });
  });

  it('may have a history where none is recorded', () => {
    const w = t.ones([2]).requiresGrad_();
    const f = compile((x: Tensor) => t.mul(x, 2));
    for (let call = 0; call < 3; call++) {
      const x = t.mul(w, call);
      expect(values(t.noGrad(() => f(x)))).toEqual([2 * call, 2 * call]);
    }
  });

  it.each<[string, unknown, (given: Record<string, unknown>) => unknown]>([
    ['an object by null', {}, (given) => (given['at'] = null)],
    ['null by an object', null, (given) => (given['at'] = {})],
    ['an object by a number', {}, (given) => (given['at'] = 5)],
    ['a number by an object', 5, (given) => (given['at'] = {})],
    ['an object by an instance of a class', {}, (given) => (given['at'] = new Scale(1))],
    ['an instance of a class by an object', new Scale(1), (given) => (given['at'] = {})],
    ['an object by another one', new Date(0), (given) => (given['at'] = new Date(0))],
    ['a name by another', { a: 1 }, (given) => (given['at'] = { b: 1 })],
  ])('are not changed: the function replaces %s', (_, at, change) => {
    const f = compile((x: Tensor, given: Record<string, unknown>) => (change(given), t.mul(x, 2)));
    expect(() => f(t.ones([1]), { at })).toThrow(/puts something into an array or an object/);
  });
});

describe('results', () => {
  it('may hold null and undefined', () => {
    const f = compile((x: Tensor) => ({ y: t.mul(x, 2), none: null, more: [undefined, null] }));
    for (let call = 0; call < 3; call++) {
      const { y, ...rest } = f(t.full([1], call));
      expect([y.item(), rest]).toEqual([2 * call, { none: null, more: [undefined, null] }]);
    }
    const nothing = compile((x: Tensor) => (t.mul(x, 2), null));
    for (let call = 0; call < 3; call++) expect(nothing(t.ones([1]))).toBe(null);
  });

  it.each<[string, (y: Tensor) => unknown]>([
    ['a map', (y) => new Map([['y', y]])],
    ['an instance of a class', () => new Scale(1)],
    ['a function', (y) => () => y],
  ])('are not %s', (_, wrap) => {
    const f = compile((x: Tensor) => ({ at: wrap(t.mul(x, 2)) }));
    expect(() => f(t.ones([1]))).toThrow(/the result\.at is .*, which a replay would not calculate again/);
  });

  it('may share memory, and each is there as often as the function returned it', () => {
    const f = compile((x: Tensor) => {
      const y = t.mul(x, 2);
      return [y, t.slice(y, 0, 1, 2), y];
    });
    for (let call = 0; call < 3; call++) {
      const results = t.scope(() => f(t.tensor([call, 3])));
      expect(results.map(values)).toEqual([[2 * call, 6], [6], [2 * call, 6]]); // prettier-ignore
    }
    expect(f.cache).toMatchObject({ misses: 1, hits: 2 });
  });

  it('that the function found in its caller’s scope are the same tensors', () => {
    t.scope(() => {
      const table = t.tensor([3, 4]);
      const f = compile((x: Tensor) => [t.mul(x, table), table]);
      for (let call = 0; call < 3; call++) expect(f(t.ones([2]))[1]).toBe(table);
    });
  });
});
