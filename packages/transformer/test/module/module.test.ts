import { type Tensor, add, compile, currentRange, mul, onRange, ones, zeros } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { Module } from '../../src/index.ts';
import { toyModel } from '../toy-model.ts';

class Shift extends Module<[x: Tensor], Tensor> {
  readonly bias = ones([2], { requiresGrad: true });
  seenRange: readonly string[] = [];
  #temporary: Tensor | null = null;

  get temporary(): Tensor | null {
    return this.#temporary;
  }

  protected override compute(x: Tensor): Tensor {
    this.seenRange = currentRange();
    this.#temporary = mul(x, 2);
    return add(this.#temporary, this.bias);
  }
}

class Pair extends Module<[x: Tensor], Tensor> {
  readonly firstShift = new Shift();
  readonly rest = [new Shift(), new Shift()];
  readonly scale = ones([1], { requiresGrad: true });

  protected override compute(x: Tensor): Tensor {
    return this.rest[1]!.forward(this.firstShift.forward(x));
  }
}

describe('Module', () => {
  it('runs what is wrapped around a calculation in its place, in its range, the last one outermost', () => {
    const shift = new Shift();
    const order: string[] = [];
    for (const name of ['inner', 'outer'])
      shift.wrap((calculate, x) => {
        order.push(`${name} in ${currentRange().join('/')}`);
        return mul(calculate(x) as Tensor, 2);
      });
    expect(shift.forward(ones([2])).toFlatArray()).toEqual([12, 12]);
    expect(order).toEqual(['outer in Shift', 'inner in Shift']);
  });

  it('compiles anew once something is wrapped around it', () => {
    const shift = new Shift();
    const compiled = compile((x: Tensor) => shift.forward(x).detach());
    const run = () => compiled(ones([2])).toFlatArray();
    expect([run(), run()]).toEqual([
      [3, 3],
      [3, 3],
    ]);
    shift.wrap((calculate, x) => calculate(add(x as Tensor, 1)));
    expect([run(), run()]).toEqual([
      [5, 5],
      [5, 5],
    ]);
    compiled.dispose();
  });

  it('names parameters as PyTorch code would, own ones first', () => {
    const names = [...new Pair().namedParameters()].map(([name]) => name);
    expect(names).toEqual(['scale', 'first_shift.bias', 'rest.0.bias', 'rest.1.bias']);
  });

  it('refuses two parameters of one name, of which a state would hold but one', () => {
    class Colliding extends Shift {
      readonly someWeight = ones([1]);
      readonly some_weight = zeros([1]);
    }
    for (const use of [(m: Colliding) => m.stateDict(), (m: Colliding) => [...m.parameters()]])
      expect(() => use(new Colliding())).toThrow(
        /two parameters have the name "some_weight"; rename a property/,
      );
  });

  it('puts a prefix and a dot before names', () => {
    const names = [...new Shift().namedParameters('a.b')].map(([name]) => name);
    expect(names).toEqual(['a.b.bias']);
  });

  it('names modules, itself first', () => {
    const pair = new Pair();
    expect([...pair.namedModules()]).toEqual([
      ['', pair],
      ['first_shift', pair.firstShift],
      ['rest.0', pair.rest[0]],
      ['rest.1', pair.rest[1]],
    ]);
    const shared = Object.assign(new Pair(), { rest: [pair.firstShift, pair.firstShift] });
    expect([...shared.namedModules('p')].map(([name]) => name)).toEqual(['p', 'p.first_shift', 'p.rest.0']);
  });

  it('is in training until eval, with all inside it', () => {
    const pair = new Pair();
    const modes = () => [pair, pair.firstShift, ...pair.rest].map(({ training }) => training);
    expect(modes()).toEqual([true, true, true, true]);
    expect(pair.eval()).toBe(pair);
    expect(modes()).toEqual([false, false, false, false]);
    pair.rest[0]!.train();
    expect(modes()).toEqual([false, false, true, false]);
    expect(pair.train()).toBe(pair);
    expect(modes()).toEqual([true, true, true, true]);
    expect(pair.train(false).training).toBe(false);
  });

  it('gives the parameters of cs336_basics', () => {
    const names = Object.keys(toyModel().stateDict());
    expect(names.slice(0, 10)).toEqual([
      'token_embeddings.weight',
      'layers.0.attn.q_proj.weight',
      'layers.0.attn.k_proj.weight',
      'layers.0.attn.v_proj.weight',
      'layers.0.attn.output_proj.weight',
      'layers.0.ffn.w1.weight',
      'layers.0.ffn.w2.weight',
      'layers.0.ffn.w3.weight',
      'layers.0.ln1.weight',
      'layers.0.ln2.weight',
    ]);
    expect(names.slice(-2)).toEqual(['ln_final.weight', 'lm_head.weight']);
  });

  it('runs in a range of its name and frees what it does not return', () => {
    const pair = new Pair();
    const result = pair.forward(ones([2]));
    expect(result.toFlatArray()).toEqual([7, 7]);
    expect(pair.rest[1]!.seenRange).toEqual(['Pair', 'rest.1']);
    expect(pair.rest[1]!.temporary!.isDisposed).toBe(true);
    expect(pair.rest[0]!.seenRange).toEqual([]);
  });

  it('names each part of a model for profilers', () => {
    const seen: string[] = [];
    const stop = onRange({ enter: () => seen.push(currentRange().join(' > ')), exit: () => {} });
    toyModel().forward(zeros([1, 2], { dtype: 'int32' }));
    stop();
    expect(seen).toContain('TransformerLM > layers.1 > attn > attention.softmax');
    expect(seen).toContain('TransformerLM > layers.0 > ffn > w2');
  });

  it('forgets gradients, and frees everything', () => {
    const pair = new Pair();
    const gradient = (pair.firstShift.bias.grad = zeros([2]));
    pair.zeroGrad();
    expect(pair.firstShift.bias.grad).toBeNull();
    expect(gradient.isDisposed).toBe(true);
    pair.dispose();
    expect([...pair.parameters()].every((parameter) => parameter.isDisposed)).toBe(true);
  });
});
