import {
  type DeviceBuffer,
  DisposedError,
  OutOfMemoryError,
  type Tensor,
  device,
  expand,
  fromTypedArray,
  ones,
  scope,
  select,
  sum,
  tensor,
  zeros,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Module, StateError, TransformerLM } from '../../src/index.ts';
import { idsOf, toyModel } from '../toy-model.ts';

const live = () => device('cpu').memoryStatistics().liveStorages;

class Weights extends Module<[x: Tensor], Tensor> {
  readonly a: Tensor;
  readonly b: Tensor;
  readonly empty = zeros([0, 3], { requiresGrad: true });

  constructor(a: Tensor, b: Tensor = a) {
    super();
    this.a = a;
    this.b = b;
  }

  protected override compute(x: Tensor): Tensor {
    return x;
  }
}

const weights = () => new Weights(leaf([1, 2]), leaf([3, 4]));
const tiedWeights = () => new Weights(leaf([1, 2]));
const leaf = (values: number[]) => tensor(values, { requiresGrad: true });
const empty = zeros([0, 3]);

afterEach(() => {
  vi.restoreAllMocks();
});

describe('stateDict', () => {
  it("gives handles that are the caller's own, live and without gradients", () => {
    const model = weights();
    const state = model.stateDict();
    expect(Object.keys(state)).toEqual(['a', 'b', 'empty']);
    expect(state['a']).not.toBe(model.a);
    expect(state['a']!.requiresGrad).toBe(false);
    model.loadStateDict({ a: tensor([7, 8]), b: model.b, empty });
    expect(state['a']!.toFlatArray()).toEqual([7, 8]);
    for (const handle of Object.values(state)) handle.dispose();
    expect(model.a.toFlatArray()).toEqual([7, 8]);
  });

  it('outlives the module, and leaves no storage', () => {
    const before = live();
    const model = weights();
    const state = model.stateDict();
    model.dispose();
    expect(state['b']!.toFlatArray()).toEqual([3, 4]);
    for (const handle of Object.values(state)) handle.dispose();
    expect(live()).toBe(before);
    scope(() => {
      weights().stateDict();
    });
    expect(live()).toBe(before);
  });

  it('gives a tied parameter under each of its names', () => {
    const model = tiedWeights();
    expect(Object.keys(model.stateDict())).toEqual(['a', 'b', 'empty']);
    expect([...model.namedParameters()].map(([name]) => name)).toEqual(['a', 'empty']);
    expect([...model.parameters()]).toHaveLength(2);
  });
});

describe('loadStateDict', () => {
  it('copies into the same parameters, which keep their gradients', () => {
    const model = weights();
    const { a } = model;
    sum(a).backward();
    const { grad } = a;
    expect(model.loadStateDict({ a: tensor([5, 6]), b: tensor([7, 8]), empty })).toEqual({
      missing: [],
      unexpected: [],
    });
    expect(model.a).toBe(a);
    expect([a.requiresGrad, a.isLeaf, a.grad]).toEqual([true, true, grad]);
    expect([a.toFlatArray(), model.b.toFlatArray()]).toEqual([
      [5, 6],
      [7, 8],
    ]);
    sum(a).backward();
    expect(a.grad!.toFlatArray()).toEqual([2, 2]);
  });

  it('leaves the state to its caller, and no storage', () => {
    const model = weights();
    const state = { a: tensor([5, 6]), b: tensor([7, 8], { dtype: 'float64' }), empty };
    const before = live();
    model.loadStateDict(state);
    scope(() => model.loadStateDict(state));
    expect(live()).toBe(before);
    expect(state.a.toFlatArray()).toEqual([5, 6]);
    state.a.dispose();
    expect(model.a.toFlatArray()).toEqual([5, 6]);
  });

  it("may be given its own parameters under one another's names", () => {
    const model = weights();
    const { a, b, ...rest } = model.stateDict();
    model.loadStateDict({ a: b!, b: a!, ...rest });
    expect([model.a.toFlatArray(), model.b.toFlatArray()]).toEqual([
      [3, 4],
      [1, 2],
    ]);
  });

  it('casts floating-point values, of any layout, to the dtype of the parameter', () => {
    const model = new Weights(ones([2], { dtype: 'bfloat16', requiresGrad: true }), leaf([3, 4]));
    const column = fromTypedArray(Float64Array.of(1.0009765625, 9, 2, 9), [2, 2]);
    model.loadStateDict({ a: select(column, 1, 0), b: model.b, empty });
    expect([model.a.dtype, ...model.a.toFlatArray()]).toEqual(['bfloat16', 1, 2]);
  });

  it('names a tensor whose values the dtype of its parameter cannot hold, and writes nothing', () => {
    for (const at of [device('cpu'), ...(hostCompilerVersion() ? [openEmulatedDevice()] : [])]) {
      const model = new Weights(leaf([1, 2]).to(at).detach(), ones([2], { dtype: 'float16', device: at }));
      const wide = tensor([5, 1e300], { dtype: 'float64' });
      const load = (a: Tensor, b: Tensor) => model.loadStateDict({ a, b, empty });
      expect(() => load(wide, ones([2]))).toThrow(StateError);
      expect(() => load(wide, ones([2]))).toThrow(
        'loading "a": it holds 1e+300 in float64, which is beyond float32',
      );
      expect(() => load(ones([2]), tensor([-70_000, 1]))).toThrow(
        'loading "b": it holds -70000 in float32, which is beyond float16',
      );
      expect([model.a.toFlatArray(), model.b.toFlatArray()]).toEqual([[1, 2], [1, 1]]); // prettier-ignore
      load(tensor([Infinity, NaN], { dtype: 'float64' }), tensor([-Infinity, 65_504]));
      expect([model.a.toFlatArray(), model.b.toFlatArray()]).toEqual([
        [Infinity, NaN],
        [-Infinity, 65_504],
      ]);
    }
  });

  it('names all that does not fit at once, and writes nothing', () => {
    const model = toyModel({ seed: 1 });
    const before = [...model.parameters()].map((parameter) => parameter.toFlatArray());
    const { 'ln_final.weight': _, ...state } = toyModel({ seed: 2 }).stateDict();
    state['other.weight'] = ones([1]);
    state['layers.0.ln1.weight'] = ones([7]);
    state['layers.1.ln2.weight'] = ones([8], { dtype: 'int32' });
    const load = (strict: boolean) => () => model.loadStateDict(state, { strict });
    expect(load(true)).toThrow(
      expect.objectContaining({ code: 'STATE', missing: ['ln_final.weight'], unexpected: ['other.weight'] }),
    );
    expect(load(true)).toThrow(
      `loadStateDict: the state does not fit the model:
  missing (1): ln_final.weight
  unexpected (1): other.weight
  of another kind (2):
    layers.0.ln1.weight is [7], the model's [8]
    layers.1.ln2.weight is int32, the model's float32
Build the model with the sizes of the state.`,
    );
    expect(load(false)).toThrow(/of another kind \(2\):\n {4}layers.0.ln1.weight/);
    expect(load(false)).not.toThrow(/missing/);
    expect([...model.parameters()].map((parameter) => parameter.toFlatArray())).toEqual(before);
  });

  it('says of layers that have the same fault that once', () => {
    const sizes = { vocabularySize: 5, contextLength: 8, feedForwardDimension: 4, heads: 2 };
    const [small, large] = [4, 8].map(
      (modelDimension) => new TransformerLM({ ...sizes, modelDimension, layers: 3 }, { seed: 0 }),
    );
    const state = { ...large!.stateDict(), 'layers.7.other': ones([1]), 'layers.9.other': ones([1]) };
    expect(() => small!.loadStateDict(state)).toThrow(/unexpected \(2\): layers\.\{7,9\}\.other\n/);
    expect(() => small!.loadStateDict(state)).toThrow(
      "layers.{0-2}.attn.q_proj.weight is [8, 8], the model's [4, 4]",
    );
  });

  it('of a state of another model it says what is most, and how much more there is', () => {
    const state = Object.fromEntries(Array.from('abcdefghijklmnop', (name) => [`other_${name}`, ones([1])]));
    expect(() => weights().loadStateDict(state)).toThrow(
      /unexpected \(16\): other_a, .*other_l, and 4 more\n/,
    );
  });

  it('refuses a parameter whose elements lie at one place, and writes nothing', () => {
    const model = new Weights(leaf([1, 2]), expand(ones([1, 2]), [3, 2]));
    const state = { a: tensor([7, 8]), b: zeros([3, 2]), empty };
    expect(() => model.loadStateDict(state)).toThrow(StateError);
    expect(() => model.loadStateDict(state)).toThrow(
      /loading "b": several elements of the parameter \[3, 2\] lie at one place, .*contiguous\(\) copy/,
    );
    expect(model.a.toFlatArray()).toEqual([1, 2]);
    const { a, empty: none } = state;
    expect(model.loadStateDict({ a, empty: none }, { strict: false }).missing).toEqual(['b']);
    expect(model.a.toFlatArray()).toEqual([7, 8]);
  });

  it('loads what fits if it need not be strict, and says what did not', () => {
    const model = weights();
    expect(() => model.loadStateDict({ b: tensor([7, 8]) })).toThrow(
      /missing \(2\): a, empty\n.*strict: false/,
    );
    expect(model.loadStateDict({ b: tensor([7, 8]), c: tensor([1]) }, { strict: false })).toEqual({
      missing: ['a', 'empty'],
      unexpected: ['c'],
    });
    expect([model.a.toFlatArray(), model.b.toFlatArray()]).toEqual([
      [1, 2],
      [7, 8],
    ]);
  });

  it('refuses disposed tensors and a disposed module by name, and writes nothing', () => {
    const model = weights();
    const gone = tensor([7, 8]);
    gone.dispose();
    expect(() => model.loadStateDict({ a: tensor([5, 6]), b: gone, empty })).toThrow(/loadStateDict: "b"/);
    expect(model.a.toFlatArray()).toEqual([1, 2]);
    const state = weights().stateDict();
    model.b.dispose();
    expect(() => model.loadStateDict(state)).toThrow(DisposedError);
    expect(() => model.loadStateDict(state)).toThrow(/loading "b"/);
    expect(model.a.toFlatArray()).toEqual([1, 2]);
  });

  it('writes nothing if the memory runs out on the way', () => {
    const model = weights();
    const state = { a: tensor([5, 6]), b: tensor([7, 8]), empty };
    // Memory is no part of what users see of a device.
    const cpu = device('cpu') as unknown as { allocate(byteLength: number): DeviceBuffer };
    const before = live();
    const allocate = cpu.allocate.bind(cpu);
    let calls = 0;
    vi.spyOn(cpu, 'allocate').mockImplementation((bytes) => {
      if (++calls >= 2)
        throw new OutOfMemoryError({ device: 'cpu', requestedBytes: bytes, heldBytes: 0, freeBytes: 0 });
      return allocate(bytes);
    });
    expect(() => model.loadStateDict(state)).toThrow(OutOfMemoryError);
    vi.restoreAllMocks();
    expect([model.a.toFlatArray(), model.b.toFlatArray()]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    // Less where tensors that other tests dropped were freed for it.
    expect(live()).toBeLessThanOrEqual(before);
  });

  it('needs one name of a tied parameter, and refuses two that differ', () => {
    for (const name of ['a', 'b']) {
      const model = tiedWeights();
      expect(model.loadStateDict({ [name]: tensor([5, 6]), empty }).missing).toEqual([]);
      expect(model.b.toFlatArray()).toEqual([5, 6]);
    }
    const model = tiedWeights();
    model.loadStateDict({ a: tensor([5, NaN]), b: tensor([5, NaN]), empty });
    expect(model.a.toFlatArray()).toEqual([5, NaN]);
    model.loadStateDict(tiedWeights().stateDict());
    expect(model.a.toFlatArray()).toEqual([1, 2]);
    const other = { a: tensor([5, 6]), b: tensor([5, 7]), empty };
    expect(() => model.loadStateDict(other)).toThrow(StateError);
    expect(() => model.loadStateDict(other)).toThrow(/a and b differ, and are one parameter of the model/);
    expect(() => model.loadStateDict({ a: tensor([5, 6]), b: tensor([5, 6, 7]), empty })).toThrow(
      /b is \[3\], the model's \[2\]/,
    );
    expect(() => model.loadStateDict({ empty })).toThrow(expect.objectContaining({ missing: ['a'] }));
    expect(model.a.toFlatArray()).toEqual([1, 2]);
  });
});

describe.skipIf(!hostCompilerVersion())('loadStateDict from device to device (needs g++)', () => {
  it('moves both ways', () => {
    const emulated = openEmulatedDevice();
    const [here, there] = [toyModel({ seed: 1 }), toyModel({ seed: 2, device: emulated })];
    const values = (model: typeof here) =>
      [...model.parameters()].map((parameter) => parameter.toFlatArray());
    const saved = values(here);
    const before = emulated.memoryStatistics().liveStorages;
    there.loadStateDict(scope(() => here.stateDict()));
    expect(values(there)).toEqual(saved);
    expect(emulated.memoryStatistics().liveStorages).toBe(before);
    expect(there.lmHead.weight.device).toBe(emulated);
    const third = toyModel({ seed: 3 });
    third.loadStateDict(there.stateDict());
    expect(values(third)).toEqual(saved);
    expect(third.forward(idsOf([[1, 2]])).toFlatArray()).toEqual(here.forward(idsOf([[1, 2]])).toFlatArray());
  }, 300_000);
});
