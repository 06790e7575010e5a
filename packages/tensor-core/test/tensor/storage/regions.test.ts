import { describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { extentOf, overlapsItself } from '../../../src/tensor/storage/extent.ts';
import { ParameterRegions } from '../../../src/tensor/storage/parameter-regions.ts';
import { currentScope } from '../../../src/tensor/lifetime/scope.ts';
import { refusePromise } from '@roofline/cuda/host';

const layout = (shape: number[], strides: number[], offset = 0) => ({ shape, strides, offset });

describe('the extent of a layout', () => {
  it.each<[number[], number[], number, t.DType, number, number]>([
    [[2, 3], [3, 1], 0, 'float32', 0, 24],
    [[2, 3], [3, 1], 5, 'float32', 20, 44],
    [[2, 3], [10, 2], 1, 'float64', 8, 8 + 8 * (10 + 4 + 1)],
    [[4], [0], 3, 'int64', 24, 32],
    [[], [], 7, 'float16', 14, 16],
    [[2, 0, 3], [9, 9, 9], 4, 'float32', 16, 16],
    [[0, 3], [3, 1], 0, 'bool', 0, 0],
  ])('%j by %j from %d of %s is bytes %d to %d', (shape, strides, offset, dtype, start, end) => {
    expect(extentOf({ ...layout(shape, strides, offset), dtype })).toEqual({ start, end });
  });

  it.each<[number[], number[], boolean]>([
    [[2, 3], [3, 1], false],
    [[2, 3], [2, 1], true],
    [[3, 2], [1, 3], false],
    [[3, 2], [1, 2], true],
    [[3], [0], true],
    [[1, 3], [0, 1], false],
    [[0, 3], [0, 0], false],
    [[], [], false],
    [[2, 2, 2], [1, 2, 4], false],
    [[2, 2, 2], [1, 2, 3], true],
    [[1], [1], false],
  ])('%j by %j: elements on one another %j', (shape, strides, expected) => {
    expect(overlapsItself(layout(shape, strides))).toBe(expected);
  });
});

describe('parameter regions', () => {
  it('last as long as one leaf of several', () => {
    const regions = new ParameterRegions();
    const region = { start: 0, end: 8 };
    for (let i = 0; i < 3; i++) regions.add({ ...region });
    for (const count of [1, 1, 0]) {
      regions.remove({ ...region });
      expect(regions.count).toBe(count);
    }
    expect(regions.around({ start: 0, end: 1 })).toBeNull();
  });

  it('prefer one that starts with what is asked for', () => {
    const regions = new ParameterRegions();
    const [whole, part] = [
      { start: 0, end: 16 },
      { start: 8, end: 16 },
    ];
    regions.add(whole);
    regions.add(part);
    expect(regions.around({ start: 8, end: 12 })).toMatchObject(part);
    expect(regions.around({ start: 0, end: 12 })).toMatchObject(whole);
    expect(regions.around({ start: 4, end: 12 })).toMatchObject(whole);
    regions.remove(whole);
    expect(regions.around({ start: 4, end: 12 })).toBeNull();
    expect(regions.around({ start: 8, end: 12 })).toMatchObject(part);
  });
});

describe('scope', () => {
  it('is visible while it runs', () => {
    expect(currentScope()).toBeNull();
    t.scope(() => {
      const outer = currentScope()!;
      expect(outer.parent).toBeNull();
      t.scope(() => expect(currentScope()!.parent).toBe(outer));
      expect(currentScope()).toBe(outer);
    });
    expect(currentScope()).toBeNull();
  });

  it('hands over what is its own, and leaves what it returns of others where that was', () => {
    const { liveStorages } = t.device('cpu').memoryStatistics();
    const live = () => t.device('cpu').memoryStatistics().liveStorages - liveStorages;
    const kept = t.keep(t.ones([1]));
    t.scope(() => {
      const outer = t.ones([2]);
      t.scope(() => t.scope(() => [kept, outer, t.ones([3])]));
      expect(live()).toBe(3);
    });
    expect(live()).toBe(1);
    expect(kept.isDisposed).toBe(false);
    kept.dispose();
  });

  it('gives back whatever it is given, and looks only into plain objects', () => {
    class Holder {
      readonly tensor = t.ones([1]);
    }
    for (const value of [null, undefined, 3, 'text', true]) expect(t.scope(() => value)).toBe(value);
    expect(t.scope(() => [null, undefined, 3, 'text'])).toEqual([null, undefined, 3, 'text']);
    expect(t.scope(() => ({ a: null, b: 'text' }))).toEqual({ a: null, b: 'text' });
    expect(t.scope(() => new Holder()).tensor.isDisposed).toBe(true);
  });
});

describe('a promise', () => {
  it('is refused, and anything else is given back', () => {
    for (const value of [null, undefined, 0, 'then', () => 0, [1]])
      expect(refusePromise('here', value)).toBe(value);
    expect(() => refusePromise('here', Promise.resolve(1))).toThrow(/^here:/);
  });
});

describe('a storage', () => {
  it('knows whether it holds parameters, while there are any', () => {
    t.scope(() => {
      const x = t.ones([4]);
      const region = { start: 4, end: 8 };
      expect([x.storage.holdsParameters, x.storage.parameterAround(region)]).toEqual([false, null]);
      x.requiresGrad_();
      expect(x.storage.holdsParameters).toBe(true);
      expect(x.storage.parameterAround(region)).toMatchObject({ start: 0, end: 16 });
      x.requiresGrad_(false);
      expect([x.storage.holdsParameters, x.storage.parameterAround(region)]).toEqual([false, null]);
    });
  });

  it('names the call that came too late', () => {
    const storage = new t.Storage(t.device('cpu'), 8);
    storage.release();
    expect(() => storage.retain()).toThrow(/^retain: a storage of 8 bytes/);
  });
});
