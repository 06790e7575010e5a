import { describe, expect, it } from 'vitest';
import {
  CompileError,
  Generator,
  type CompiledFunction,
  type Tensor,
  add,
  addInPlace,
  autocast,
  backward,
  checkpoint,
  compile,
  dropout,
  full,
  keep,
  matmul,
  mul,
  noGrad,
  ones,
  reshape,
  select,
  scope,
  softmax,
  sum,
  tensor,
  transpose,
  uniform,
} from '../../src/index.ts';

const values = (x: Tensor) => x.toFlatArray();

describe('compile', () => {
  it('gives what the function gives, without running it again', () => {
    let runs = 0;
    const f = compile((x: Tensor, y: Tensor) => {
      runs++;
      return { sum: add(x, y), both: [matmul(x, transpose(y, 0, 1)), softmax(mul(x, 3), 1)] };
    });
    for (let i = 0; i < 3; i++) {
      const x = uniform([4, 5]);
      const y = uniform([4, 5]);
      const { sum: s, both } = f(x, y);
      expect(values(s)).toEqual(values(add(x, y)));
      expect(values(both[0]!)).toEqual(values(matmul(x, transpose(y, 0, 1))));
      expect(values(both[1]!)).toEqual(values(softmax(mul(x, 3), 1)));
    }
    expect(runs).toBe(1);
    expect(f.cache).toMatchObject({ size: 1, hits: 2, misses: 1 });
  });

  it('trains', () => {
    const w = uniform([3, 2]).requiresGrad_();
    const eager = tensor(w.toArray()).requiresGrad_();
    const step = (weight: Tensor) => (x: Tensor) => {
      weight.grad?.dispose();
      weight.grad = null;
      const loss = sum(mul(matmul(x, weight), matmul(x, weight)));
      backward(loss);
      noGrad(() => addInPlace(weight, mul(weight.grad!, -0.01)));
      return loss.detach();
    };
    const compiled = compile(step(w));
    for (let i = 0; i < 5; i++) {
      const x = uniform([4, 3]);
      expect(compiled(x).item()).toBeCloseTo(scope(() => step(eager)(x)).item(), 5);
      expect(values(w)).toEqual(values(eager));
      expect(values(w.grad!)).toEqual(values(eager.grad!));
    }
    expect(compiled.cache).toMatchObject({ hits: 3, misses: 2 });
  });

  it('refuses reads of the host', () => {
    const f = compile((x: Tensor) => (sum(x).item() > 0 ? x : mul(x, 2)));
    expect(() => f(full([2], 1))).toThrow(CompileError);
    expect(() => f(full([2], 1))).toThrow(/reads a tensor \[\] float32 \(behind the op sum\)/);
  });

  it('takes views', () => {
    const f = compile((x: Tensor) => sum(reshape(x, [2, 3]), { dims: 0 }));
    const wide = uniform([6, 2]);
    for (let i = 0; i < 2; i++) expect(values(f(select(transpose(wide, 0, 1), 0, 1)))).toHaveLength(3);
  });

  it('casts parameters itself inside autocast, whether the region goes on or ends', () => {
    const run = (wrap: (fn: (x: Tensor) => Tensor) => (x: Tensor) => Tensor) => {
      const w = tensor([[1, 2], [3, 4]], { requiresGrad: true }); // prettier-ignore
      const product = wrap((x: Tensor) => noGrad(() => matmul(x, w)));
      const seen: unknown[] = [];
      const calls = (call: number) => {
        // The region already has a cast of the parameter then.
        noGrad(() => matmul(ones([1, 2]), w)).dispose();
        for (let i = 0; i < 3; i++) {
          seen.push(values(product(ones([1, 2]))));
          noGrad(() => addInPlace(w, full([2, 2], call + 1)));
        }
      };
      for (let call = 0; call < 6; call++) autocast('bfloat16', () => calls(call));
      return seen;
    };
    const compiled: CompiledFunction<(x: Tensor) => Tensor>[] = [];
    const seen = run((fn) => {
      compiled.push(compile(fn));
      return compiled[0]!;
    });
    expect(seen).toEqual(run((fn) => fn));
    expect(compiled[0]!.cache).toMatchObject({ misses: 1, hits: 17 });
  });

  it('keeps what the function keeps', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const f = compile((x: Tensor) => {
      w.grad = null;
      backward(sum(mul(x, w)));
      return [keep(mul(x, 2)), mul(x, 3), w.grad!] as const;
    });
    for (let i = 0; i < 4; i++) {
      const results: Tensor[] = [];
      scope(() => void results.push(...f(full([2], i))));
      // The capturing calls, one without a gradient and one with, return the gradient itself.
      expect(results.map(({ isDisposed }) => isDisposed)).toEqual([false, true, i > 1]);
      expect(values(results[0]!)).toEqual([2 * i, 2 * i]);
      results[0]!.dispose();
    }
    expect(f.cache).toMatchObject({ misses: 2, hits: 2 });
  });

  it('waits for what four calls in a row leave behind, as buffers that are made one by one', () => {
    const buffers: Tensor[] = [];
    const f = compile((x: Tensor) => {
      if (buffers.length < 4) buffers.push(keep(mul(x, 2)));
      return buffers.reduce((total, buffer) => add(total, buffer), x);
    });
    const seen = [1, 1, 1, 1, 1, 3].map((value) => f(full([1], value)).item());
    expect(seen).toEqual([3, 5, 7, 9, 9, 11]);
    expect(f.cache).toMatchObject({ misses: 5, hits: 1 });
  });

  it('runs eagerly inside a checkpoint, whose backward pass draws the same numbers again', () => {
    const w = full([64], 1).requiresGrad_();
    const generator = new Generator(1);
    const masked = compile((x: Tensor) => noGrad(() => dropout(x, { p: 0.5, generator })));
    const mask = full([64], 1);
    masked(mask);
    for (let call = 0; call < 2; call++) {
      w.grad = null;
      const y = checkpoint((x) => mul(x, masked(mask)), w);
      sum(y).backward();
      expect(values(w.grad!)).toEqual(values(y));
    }
    expect(masked.cache).toMatchObject({ misses: 1, hits: 0 });
  });
});
