import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Tensor, compile } from '../../src/index.ts';
import { keptExp } from './elsewhere.ts';

const values = (x: Tensor) => x.toFlatArray();

function circleOf(x: Tensor): unknown {
  const outer = { inner: { x, outer: undefined as unknown } };
  outer.inner.outer = outer;
  return outer;
}

describe('a compiled function refuses', () => {
  it.each<[string, (x: Tensor) => unknown, RegExp]>([
    ['values of the host', (x) => t.mul(x, t.tensor([1, 2])), /filled with values of the host/],
    ['results that are no tensors', (x) => ({ y: t.mul(x, 2), at: 5 }), /the result\.at is 5/],
    ['results that hold themselves', (x) => circleOf(t.mul(x, 2)), /the result\.inner\.outer holds itself/],
    ['results with a history', (x) => t.mul(x, weight), /of the op mul has a history.*detach\(\)/],
    ['moves between devices', (x) => t.mul(x, 2).toTypedArray(), /the host reads/],
  ])('%s', (_, fn, message) => {
    const live = t.device('cpu').memoryStatistics().liveStorages;
    const call = compile(fn as (x: Tensor) => Tensor);
    const run = () => t.scope(() => void call(t.tensor([1, 2])));
    expect(run).toThrow(CompileError);
    expect(run).toThrow(message);
    expect(t.device('cpu').memoryStatistics().liveStorages).toBe(live);
  });

  const weight = t.tensor([1, 2]).requiresGrad_();

  it('tensors that stay behind at every call', () => {
    const kept: Tensor[] = [];
    const call = compile((x: Tensor) => {
      kept.push(t.keep(t.exp(x)));
    });
    const run = () => {
      for (let i = 0; i < 8; i++) call(t.tensor([1, 2]));
    };
    expect(run).toThrow(/a tensor \[2\] of the op exp stays behind at every call/);
  });

  it('tensors that stay behind beside the results that they share memory with, and says where they were made', () => {
    const kept: Tensor[] = [];
    const alias = compile((x: Tensor) => {
      const y = t.mul(x, 2);
      kept.push(t.keep(t.slice(y, 0, 0, 1)));
      return y;
    });
    const made = compile((x: Tensor) => void kept.push(keptExp(x)));
    const untouched = compile((x: Tensor) => {
      const y = t.keep(t.empty([2]));
      kept.push(y);
      return t.add(x, y);
    });
    for (const [call, message] of [
      [alias, /a tensor \[2\] of the op mul stays behind/],
      [made, /of the op exp stays behind.* At .*elsewhere\.ts:\d/],
      [untouched, /of the op empty stays behind.*make it outside/],
    ] as const) {
      for (let i = 0; i < 4; i++) call(t.tensor([1, 2]));
      expect(() => call(t.tensor([1, 2]))).toThrow(message);
    }
  });

  it('no requirement and no history of what it makes in its first call', () => {
    const p = t.tensor([1, 2]).requiresGrad_();
    const [weights, buffers]: [Tensor[], Tensor[]] = [[], []];
    const trains = compile((x: Tensor) => {
      const w = (weights[0] ??= t.keep(t.full([2], 3).requiresGrad_()));
      t.sum(t.mul(w, x)).backward();
    });
    for (let call = 1; call < 5; call++) {
      trains(t.ones([2]));
      expect(weights[0]!.grad!.toFlatArray()).toEqual([call, call]);
    }
    expect(trains.cache.hits).toBeGreaterThan(0);
    const writes = compile((x: Tensor) => {
      const buffer = (buffers[0] ??= t.keep(t.zeros([2])));
      t.copyInPlace(buffer, t.mul(p, x));
    });
    writes(t.ones([2]));
    expect(() => writes(t.ones([2]))).toThrow(/a write leaves a history in a tensor \[2\]/);
  });

  it('no history in a found tensor that it disposes of', () => {
    const p = t.tensor([1, 2]).requiresGrad_();
    const buffer = t.zeros([2]);
    const f = compile((x: Tensor) => {
      t.copyInPlace(buffer, t.mul(p, x));
      buffer.dispose();
      return t.mul(x, 2);
    });
    expect(values(f(t.ones([2])))).toEqual([2, 2]);
  });

  it('also where the function catches the error, and would continue another way', () => {
    const buffer = t.ones([4]);
    const reads = compile((x: Tensor) => {
      let factor = -1;
      try {
        factor = t.sum(x).item() as number;
      } catch {
        // Continues without it.
      }
      return t.mul(x, factor);
    });
    const shares = compile((x: Tensor) => {
      try {
        t.addInPlace(buffer, t.ones([4]));
      } catch {
        // Continues without it.
      }
      return t.mul(x, 2);
    });
    for (let i = 0; i < 2; i++) {
      expect(() => reads(t.ones([2]))).toThrow(/the host reads a tensor/);
      expect(() => shares(t.slice(buffer, 0, 0, 2))).toThrow(/shares memory/);
    }
  });

  it('gradients that it takes from a leaf without freeing them, and says how', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    const call = compile((x: Tensor) => {
      t.sum(t.mul(x, leaf)).backward();
      leaf.grad = null;
    });
    const run = () => {
      for (let i = 0; i < 8; i++) call(t.ones([2]));
    };
    expect(run).toThrow(
      /the gradient of a leaf \[2\], which the function has taken from it, stays.*dispose\(\)/,
    );
  });

  it('setting on the host what replays would not', () => {
    const generator = new t.Generator(1);
    const begins = compile((x: Tensor) => {
      generator.offset = 0;
      return t.dropout(x, { generator });
    });
    const isPrecise = compile((x: Tensor) => {
      t.setFloat32MatmulPrecision('high');
      return t.matmul(x, x);
    });
    expect(() => begins(t.ones([2]))).toThrow(/a Generator's offset is set.* Set it before each call/);
    expect(() => isPrecise(t.ones([2, 2]))).toThrow(/the precision of float32 products is set/);
    expect(t.getFloat32MatmulPrecision()).toBe('highest');
  });

  it('a cache of no specialization', () => {
    expect(() => compile(() => {}, { cacheSize: 0 })).toThrow(
      /cacheSize must be a whole number of one or more/,
    );
  });

  it('hooks of gradients', () => {
    const leaf = t.tensor([1, 2]).requiresGrad_();
    leaf.onGradientAccumulated(() => {});
    const call = compile((x: Tensor) => t.sum(t.mul(x, leaf)).backward());
    expect(() => call(t.ones([2]))).toThrow(/a hook runs when a gradient has come/);
    expect(leaf.grad).toBeNull();
  });

  it('writing memory that something else works on', () => {
    const target = t.zeros([4]);
    const call = compile((x: Tensor) => t.addInPlace(t.slice(target, 0, 0, 2), x));
    const x = t.ones([2]);
    for (let i = 0; i < 2; i++) call(x);
    const [first, second] = [0, 8].map((start) =>
      target.storage.hold({ start, end: start + 8 }, 'allReduce'),
    );
    expect(() => call(x)).toThrow(
      /writes 8 bytes that allReduce works on; .*The op add_ at .*refusals.test.ts:\d+/,
    );
    first!();
    call(x);
    second!();
    expect(values(target)).toEqual([3, 3, 0, 0]);
  });

  it.each<[string, (given: { x: Tensor; all: Tensor[]; count: number }) => unknown]>([
    ['puts a tensor into an object', (given) => Object.assign(given, { y: t.keep(t.exp(given.x)) })],
    ['puts another tensor in the place of one', (given) => (given.x = t.keep(t.exp(given.x)))],
    ['lengthens an array', ({ x, all }) => all.push(t.mul(x, 2))],
    ['reorders an array', ({ x, all }) => (t.mul(x, 2), all.reverse())],
    ['counts', (given) => t.mul(given.x, ++given.count)],
    ['counts, and runs no op', (given) => given.count++],
  ])('to change its arguments, of which it has copies: one that %s', (_, change) => {
    const call = compile((given: Parameters<typeof change>[0]) => void change(given));
    const given = { x: t.ones([2]), all: [t.ones([2]), t.zeros([2])], count: 5, not: NaN };
    for (let i = 0; i < 2; i++)
      expect(() => call(given)).toThrow(/puts something into an array or an object among its arguments/);
    expect([Object.keys(given), given.all.length]).toEqual([['x', 'all', 'count', 'not'], 2]);
  });

  it('disposing of an argument, which its caller would keep', () => {
    const call = compile((x: Tensor) => {
      const y = t.mul(x, 2);
      x.dispose();
      return y;
    });
    expect(() => call(t.ones([2]))).toThrow(/disposes of an argument.* dispose of it outside/);
  });

  it('results that require a gradient of their own', () => {
    const input = (x: Tensor) => {
      const leaf = t.mul(x, 2).detach().requiresGrad_();
      t.sum(t.mul(leaf, leaf)).backward();
      return [leaf, leaf.grad!];
    };
    for (const call of [compile(input), compile((x: Tensor) => [t.exp(x), weight.detach().requiresGrad_()])])
      expect(() => call(t.ones([2]))).toThrow(/is a leaf that requires a gradient.* return detach\(\) of it/);
    const call = compile((x: Tensor) => input(x).map((each) => each.detach()));
    for (let i = 0; i < 3; i++) expect(call(t.tensor([i, 1])).map(values)).toEqual([[2 * i, 2], [4 * i, 4]]); // prettier-ignore
  });

  it('results with a history that it made inside noGrad(), and gives those that it found', () => {
    const made = compile((x: Tensor) => t.enableGrad(() => t.mul(weight, x)));
    const history = t.mul(weight, 2);
    const found = compile((x: Tensor) => [t.mul(x, 2), history]);
    for (let i = 0; i < 2; i++) {
      expect(() => t.noGrad(() => made(t.ones([2])))).toThrow(/has a history.*detach\(\)/);
      expect(t.noGrad(() => found(t.ones([2])))[1]).toBe(history);
      expect(() => found(t.ones([2]))).toThrow(/the result \[2\] has a history/);
    }
  });

  it('async functions, arguments with a history and circles', () => {
    expect(() => compile(async () => {})).toThrow(/compile: the function is async/);
    expect(() => compile((x: Tensor) => Promise.resolve(t.exp(x)))(t.ones([2]))).toThrow(
      /compile: the function .* returned a promise/,
    );
    const call = compile((x: unknown) => x);
    expect(() => call(t.mul(weight, 2))).toThrow(/an argument has a history/);
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => call(circle)).toThrow(/holds itself/);
    const map = new Map<unknown, unknown>();
    expect(() => call(map.set('map', map))).toThrow(/holds itself/);
    expect(() => call({ [Symbol('key')]: 1 })).toThrow(/Symbol\(key\) is no key/);
  });
});
