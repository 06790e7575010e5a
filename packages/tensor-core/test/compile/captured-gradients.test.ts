import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type CompiledFunction, type Device, type Tensor, compile } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';

const values = (x: Tensor | null) => x && x.toFlatArray();

type Wrap = <F extends (...given: Tensor[]) => unknown>(fn: F) => F;

/** What `run` sees, compiled and eagerly, and how its functions were called. */
function compared<T>(run: (wrap: Wrap) => T): CompiledFunction<never>['cache'][] {
  const programs: CompiledFunction<never>[] = [];
  const seen = run(((fn: never) => {
    const f = compile(fn) as CompiledFunction<never>;
    programs.push(f);
    return f;
  }) as Wrap);
  expect(seen).toEqual(run((fn) => fn));
  return programs.map(({ cache }) => cache);
}

describe('on the CPU', () => followsGradients(() => t.device('cpu')));

describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const device = openEmulatedDevice();
  followsGradients(() => device);

  it('a gradient on another device than before is no gradient that a replay reads', () => {
    compared((wrap) => {
      const w = t.ones([2]).requiresGrad_();
      const f = wrap((x: Tensor) => t.add(x, w.grad!));
      return [t.ones([2]), t.ones([2]), t.ones([2], { device }), t.ones([2])].map((grad) => {
        w.grad = grad;
        try {
          return values(f(t.ones([2])));
        } catch (error) {
          return error instanceof t.DeviceError;
        }
      });
    });
  });

  it('an argument that only goes through is on the device of the ops; what is found may be on another', () => {
    const table = t.ones([2]);
    const passes = compile((x: Tensor, y: Tensor) => [t.mul(x, 2), y]);
    expect(() => passes(t.ones([2], { device }), table)).toThrow(CompileError);
    expect(() => passes(t.ones([2], { device }), table)).toThrow(
      /an argument \[2\] on cpu is handed on by a function whose ops run on cuda:0/,
    );
    const finds = compile((x: Tensor) => [t.mul(x, 2), table]);
    for (let call = 0; call < 3; call++) expect(finds(t.ones([2], { device }))[1]).toBe(table);
  });
});

function followsGradients(deviceOf: () => Device): void {
  const on = (numbers: number[] | number[][]) => t.tensor(numbers, { device: deviceOf() });
  const leaf = (...numbers: number[]) => on(numbers).requiresGrad_();

  it('a gradient that a run adds to stays the same tensor', () => {
    const w = leaf(1, 2);
    const own = (w.grad = on([0, 0]));
    const add = compile((x: Tensor) => t.sum(t.mul(w, x)).backward());
    for (let call = 1; call < 4; call++) {
      add(on([1, 1]));
      expect([w.grad === own, values(own)]).toEqual([true, [call, call]]);
    }
  });

  it('a gradient may be there and then not, and of another shape', () => {
    const caches = compared((wrap) => {
      const w = leaf(1, 2);
      const f = wrap((x: Tensor) => (w.grad ? t.add(x, w.grad) : t.mul(x, 2)));
      const makers = [() => on([3, 4]), () => null, () => on([[3, 4], [5, 6]]), () => on([7, 8])]; // prettier-ignore
      return makers.flatMap((make) =>
        [0, 1].map(() => {
          w.grad = make();
          return values(f(on([1, 1])));
        }),
      );
    });
    expect(caches).toMatchObject([{ misses: 3, hits: 5 }]);
  });

  it('a gradient that fills its memory may be followed by one that is a part, or lies otherwise', () => {
    compared((wrap) => {
      const w = on([[1, 2], [3, 4]]).requiresGrad_(); // prettier-ignore
      const flat = t.zeros([6], { device: deviceOf() });
      const add = wrap((x: Tensor) => t.sum(t.mul(w, x)).backward());
      const makers = [
        () => t.zeros([2, 2], { device: deviceOf() }),
        () => t.view(t.slice(flat, 0, 0, 4), [2, 2]),
        () => t.transpose(on([[1, 2], [3, 4]])), // prettier-ignore
      ];
      return makers.flatMap((make) => {
        w.grad = make();
        return [0, 1, 2].map((call) => {
          t.scope(() => add(on([[1, 2], [3, call]]))); // prettier-ignore
          return [w.grad, flat].map(values);
        });
      });
    });
  });

  it('a gradient that is replaced is followed, though somebody else holds the one before', () => {
    const w = leaf(1, 2);
    const others: Tensor[] = [];
    const f = compile((x: Tensor) => t.add(x, w.grad!));
    for (let call = 0; call < 4; call++) {
      w.grad = on([call, 5]);
      others.push(t.alias(w.grad));
      expect(values(f(on([1, 1])))).toEqual([call + 1, 6]);
    }
    expect(f.cache).toMatchObject({ misses: 1, hits: 3 });
  });

  it('memory that was held besides a gradient is read, not the next gradient', () => {
    const caches = compared((wrap) => {
      const w = leaf(1, 2);
      const held = on([7, 8]);
      w.grad = t.alias(held);
      const f = wrap((x: Tensor) => (w.grad ? t.add(x, held) : x));
      return [0, 1, 2].map((call) => {
        if (call === 2) w.grad = on([100, 100]);
        return values(f(on([1, 1])));
      });
    });
    expect(caches[0]!.misses).toBe(2);
  });

  it('of two gradients in one memory each goes its own way', () => {
    compared((wrap) => {
      const [a, b] = [leaf(1, 2), leaf(3, 4)];
      const both = on([1, 1]);
      [a.grad, b.grad] = [t.alias(both), t.alias(both)];
      const f = wrap((x: Tensor) => {
        const [ofA, ofB] = [a.grad!, b.grad!];
        return t.add(t.mul(ofA, x), t.mul(ofB, 10));
      });
      return [0, 1, 2, 3].map((call) => {
        if (call === 1) b.grad = on([5, 5]);
        if (call === 3) a.grad = on([6, 6]);
        return values(f(on([1, 2])));
      });
    });
  });

  it('a gradient that is also a result keeps its numbers, though its leaf has lost it', () => {
    const w = leaf(1, 2);
    const f = compile((x: Tensor) => {
      w.grad = null;
      t.sum(t.mul(t.mul(w, w), x)).backward();
      return w.grad!;
    });
    for (let call = 0; call < 2; call++) f(on([1, 1]));
    const results = [2, 3, 4].map((factor) => {
      const result = f(on([factor, factor]));
      w.grad!.dispose();
      return result;
    });
    expect(results.map(values)).toEqual([[4, 8], [6, 12], [8, 16]]); // prettier-ignore
    expect(f.cache.hits).toBeGreaterThan(1);
  });

  it('a leaf that the function disposes of has none', () => {
    const w = leaf(1, 2);
    w.grad = on([3, 4]);
    const f = compile((x: Tensor) => {
      const y = t.add(x, w.grad!);
      w.dispose();
      return y;
    });
    expect(values(f(on([1, 1])))).toEqual([4, 5]);
    expect(() => f(on([1, 1]))).toThrow(t.DTypeError);
  });

  it('a gradient that its scope frees is refused by name, and one in an argument too', () => {
    const w = leaf(1, 2);
    const made = compile((x: Tensor) => {
      w.grad = t.mul(x, 2);
    });
    expect(() => made(on([1, 1]))).toThrow(/a leaf \[2\] was freed .*, a result of the op mul; keep\(\) it/);
    const part = compile((x: Tensor) => {
      w.grad = t.slice(x, 0, 0, 2);
      t.mul(x, 2);
    });
    expect(() => part(on([1, 1, 1]))).toThrow(
      /a leaf \[2\] was freed with what else the function made; keep/,
    );
  });
}
