import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { CompileError, type Device, type Tensor, compile } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';

const values = (x: Tensor | null) => x && x.toFlatArray();

describe('on the CPU', () => leavesStateAsEager(() => t.device('cpu')));

describe.skipIf(hostCompilerVersion() === null)('on an emulated GPU', () => {
  const device = openEmulatedDevice();
  leavesStateAsEager(() => device);
});

/** What a call leaves besides its result: histories, requirements, and writes before it threw. */
function leavesStateAsEager(deviceOf: () => Device): void {
  const on = (numbers: number[]) => t.tensor(numbers, { device: deviceOf() });
  const leaf = () => on([1, 1]).requiresGrad_();

  it.each<[string, (target: Tensor, source: Tensor) => void]>([
    ['copyInPlace', (target, source) => t.copyInPlace(target, source)],
    ['addInPlace', (target, source) => t.addInPlace(target, source)],
  ])('a history that a write would leave in a tensor from outside is refused: %s', (_, write) => {
    const p = leaf();
    const captured = on([5, 5]);
    const toCaptured = compile((x: Tensor) => write(captured, t.mul(p, x)));
    const toArgument = compile((x: Tensor) => write(x, t.mul(p, 2)));
    const refused = /a history.*\[2\].*noGrad\(\).*detach\(\)/;
    for (let call = 0; call < 2; call++) {
      expect(() => toCaptured(on([2, 3]))).toThrow(CompileError);
      expect(() => toCaptured(on([2, 3]))).toThrow(refused);
      expect(() => toArgument(on([2, 3]))).toThrow(refused);
    }
    expect(p.grad).toBe(null);
  });

  it('a write without a history is not refused, nor one to a tensor made inside', () => {
    const p = leaf();
    const captured = on([5, 5]);
    const f = compile((x: Tensor) => {
      p.grad?.dispose();
      p.grad = null;
      const own = t.zeros([2], { device: deviceOf() });
      t.copyInPlace(own, t.mul(p, x));
      t.sum(own).backward();
      t.noGrad(() => t.copyInPlace(captured, t.mul(p, x)));
      t.addInPlace(x, t.mul(p, 2).detach());
    });
    for (let call = 0; call < 3; call++) {
      const x = on([2 + call, 3]);
      f(x);
      expect([p.grad, captured, x].map(values)).toEqual([[2 + call, 3], [2 + call, 3], [4 + call, 5]]); // prettier-ignore
    }
    expect(f.cache.hits).toBe(1);
  });

  it('a requirement that changes is refused, and one that is restored is not', () => {
    const [frozen, w] = [on([1, 2]), leaf()];
    const ofArgument = compile((x: Tensor) => t.mul(x.requiresGrad_(), 2).detach());
    const ofCaptured = compile((x: Tensor) => (frozen.requiresGrad_(), t.mul(x, frozen).detach()));
    const toggles = compile((x: Tensor) => (w.requiresGrad_(!w.requiresGrad), t.mul(x, w).detach()));
    const refused = /requiresGrad_\(\).*\[2\].*outside/;
    for (const f of [ofArgument, ofCaptured, toggles]) expect(() => f(on([2, 3]))).toThrow(refused);
    expect(() => toggles(on([2, 3]))).toThrow(CompileError);
    w.requiresGrad_();
    const comesBack = compile((x: Tensor) => {
      w.grad?.dispose();
      w.grad = null;
      w.requiresGrad_(false);
      const y = t.mul(w, x);
      w.requiresGrad_();
      t.sum(t.mul(w, y)).backward();
    });
    for (let call = 0; call < 3; call++) {
      comesBack(on([call, 3]));
      expect(values(w.grad)).toEqual([call, 3]);
    }
  });

  it('a gradient that only the copy of an argument would have is refused', () => {
    const sets = compile((x: Tensor) => {
      x.grad = t.keep(t.mul(x, 3));
    });
    const collects = compile((x: Tensor) => {
      x.requiresGrad_();
      t.sum(t.mul(x, x)).backward();
      x.requiresGrad_(false);
    });
    for (const f of [sets, collects])
      expect(() => f(on([2, 3]))).toThrow(/an argument \[2\] gets a gradient.*return the gradient/);
    const passes = compile((x: Tensor) => {
      x.grad?.dispose();
      x.grad = t.keep(t.mul(x.detach(), 3));
    });
    const w = leaf();
    for (let call = 0; call < 3; call++) {
      t.noGrad(() => t.addInPlace(w, t.onesLike(w)));
      passes(w);
      expect(values(w.grad)).toEqual([3 * (call + 2), 3 * (call + 2)]);
    }
  });

  it('what it wrote before it threw stays written, in arguments and in tensors from outside', () => {
    for (const wrap of [(fn: (x: Tensor) => void) => fn, (fn: (x: Tensor) => void) => compile(fn)]) {
      const total = on([1, 1]);
      let fails = true;
      const f = wrap((x: Tensor) => {
        t.addInPlace(x, t.onesLike(x));
        t.addInPlace(total, x);
        if (t.dependOn(() => fails)) throw new Error('in the middle');
        t.addInPlace(x, t.onesLike(x));
      });
      const x = on([1, 2]);
      for (let call = 0; call < 2; call++) expect(() => f(x)).toThrow('in the middle');
      expect([x, total].map(values)).toEqual([[3, 4], [6, 8]]); // prettier-ignore
      fails = false;
      f(x);
      f(x);
      fails = true;
      expect(() => f(x)).toThrow('in the middle');
      expect([x, total].map(values)).toEqual([[8, 9], [24, 29]]); // prettier-ignore
    }
  });

  it.each<[string, (w: Tensor, found: Tensor) => void]>([
    ['dropped', (w) => (w.grad = null)],
    ['disposed of', (w, found) => (found.dispose(), (w.grad = null))],
    ['replaced by what follows from it', (w, found) => (w.grad = t.keep(t.matmul(found, found)))],
    [
      'replaced, and disposed of',
      (w, found) => {
        const [double, square] = [t.add(found, found), t.matmul(found, found)];
        w.grad = t.keep(t.matmul(square, double));
        found.dispose();
      },
    ],
  ])('a gradient that was found, read and %s', (_, change) => {
    const run = (wrap: (fn: () => void) => () => void) => {
      const w = t.ones([2, 2], { device: deviceOf() }).requiresGrad_();
      const total = on([0, 0]);
      const f = wrap(() => {
        t.noGrad(() => t.addInPlace(total, t.select(w.grad!, 0, 1)));
        change(w, w.grad!);
      });
      return [1, 2, 3].map((call) => {
        const found = t.tensor([[1, call], [call, 2]], { device: deviceOf() }); // prettier-ignore
        w.grad = found;
        t.scope(() => f());
        return [values(total), values(w.grad), found.isDisposed || values(found)];
      });
    };
    expect(run((fn) => compile(fn))).toEqual(run((fn) => fn));
  });

  it('a gradient that a run adds to counts as written: what backward saved of it before is an error', () => {
    const [w, p] = [leaf(), leaf()];
    w.grad = on([3, 4]);
    const add = compile((x: Tensor) => t.sum(t.mul(w, x)).backward());
    for (let call = 0; call < 2; call++) add(on([1, 1]));
    const loss = t.sum(t.mul(w.grad, p));
    add(on([1, 1]));
    expect(() => loss.backward()).toThrow(/written in place/);
    expect(values(w.grad)).toEqual([6, 7]);
  });

  it('a gradient that is a part of an argument lives on after a call that threw', () => {
    const w = leaf();
    const f = compile((x: Tensor) => {
      w.grad = t.keep(t.slice(x, 0, 0, 2));
      throw new Error('later');
    });
    expect(() => t.scope(() => f(on([7, 8, 9])))).toThrow('later');
    expect(values(w.grad)).toEqual([7, 8]);
  });
}

describe('on the CPU, an index out of range', () => {
  it('leaves what was written before it, in the first call as in replays', () => {
    const table = t.tensor([[1, 2], [3, 4]]); // prettier-ignore
    const step = (seen: Tensor) => (x: Tensor, ids: Tensor) => {
      t.addInPlace(x, t.onesLike(x));
      t.addInPlace(seen, t.mul(x, 2));
      const rows = t.embedding(table, ids);
      t.addInPlace(x, t.select(rows, 0, 0));
      t.addInPlace(seen, x);
      return t.mul(rows, 2);
    };
    const run = (wrap: (fn: ReturnType<typeof step>) => ReturnType<typeof step>) => {
      const seen = t.tensor([0, 0]);
      const f = wrap(step(seen));
      return [0, 1, 7, 1, -1].map((id) => {
        const x = t.tensor([5, 6]);
        let message = '';
        try {
          f(x, t.tensor([id], { dtype: 'int64' }));
        } catch (error) {
          message = (error as Error).message;
        }
        return [values(x), values(seen), message];
      });
    };
    const eager = run((fn) => fn);
    expect(eager.filter(([, , message]) => message !== '')).toHaveLength(2);
    expect(run(compile)).toEqual(eager);
    const first = compile(step(t.tensor([0, 0])));
    const x = t.tensor([5, 6]);
    expect(() => first(x, t.tensor([9], { dtype: 'int64' }))).toThrow(t.ShapeError);
    expect(values(x)).toEqual([6, 7]);
  });
});

describe('a compiled function', () => {
  it('refuses to read the position of a generator, which each of its runs advances', () => {
    const generator = new t.Generator(3);
    const f = compile((x: Tensor) => {
      const y = t.mul(t.randn([2], { generator }), x);
      return t.mul(y, generator.offset);
    });
    expect(() => f(t.ones([2]))).toThrow(CompileError);
    expect(() => f(t.ones([2]))).toThrow(/offset is read.*outside/);
  });

  it.each(['dispose', 'evict'])('outlives the reads before a run: %s', (how) => {
    let ask = () => {};
    const f = compile(
      (x: Tensor) => {
        const factor = t.dependOn(() => (ask(), 2));
        return t.mul(x, factor);
      },
      { cacheSize: 1 },
    );
    const once = (act: () => unknown) => () => {
      ask = () => {};
      act();
    };
    for (let round = 0; round < 3; round++) {
      for (let call = 0; call < 2; call++) expect(values(f(t.tensor([1, 2])))).toEqual([2, 4]);
      ask = once(how === 'dispose' ? () => f.dispose() : () => f(t.tensor([1, 2, 3])));
      expect(values(f(t.tensor([1, 2])))).toEqual([2, 4]);
      expect(values(f(t.tensor([3, 4])))).toEqual([6, 8]);
      expect(f.cache.size).toBe(1);
    }
  });
});
