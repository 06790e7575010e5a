import {
  DeviceError,
  RooflineError,
  type Tensor,
  add,
  checkpoint,
  device,
  expand,
  full,
  keep,
  mul,
  ones,
  scope,
  sum,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  DistributedDataParallel,
  type DistributedDataParallelOptions,
  type ReplicatedModel,
} from '../../src/index.ts';
import { InstantBackend, groupOn } from '../support/instant-backend.ts';

const count = 4;
const rowBytes = 64;

/** Four parameters of 64 bytes, in a model that multiplies its input by all of them. */
class Model implements ReplicatedModel {
  readonly parameters = Array.from({ length: count }, (_, i) => keep(full([16], i + 1)).requiresGrad_());

  *namedParameters(): Generator<[string, Tensor]> {
    for (const [i, parameter] of this.parameters.entries()) yield [`layers.${i}`, parameter];
  }

  /** Of the first `used` parameters. */
  loss(used = count): Tensor {
    return sum(this.parameters.slice(0, used).reduce((x, parameter) => mul(x, parameter)));
  }

  zeroGrad(): void {
    for (const parameter of this.parameters) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  dispose(): void {
    for (const parameter of this.parameters) parameter.dispose();
  }
}

/** A model on a backend that leaves reductions under way until they are waited for. */
function parallelOf(options: DistributedDataParallelOptions = {}) {
  const backend = new InstantBackend(null);
  const model = new Model();
  const parallel = new DistributedDataParallel(model, groupOn(backend), options);
  backend.calls.length = 0;
  return { backend, model, parallel };
}

const backward = (model: Model, used?: number) => scope(() => model.loss(used).backward());
const storagesOf = ({ parameters }: Model) => new Set(parameters.map(({ grad }) => grad!.storage));
const kindsOf = ({ calls }: InstantBackend) =>
  calls.map(({ kind, count: elements }) => `${kind} ${elements}`);

describe('the start', () => {
  it('refuses parameters that another one reduces, until that is disposed of', () => {
    const { model, parallel } = parallelOf();
    const again = () => new DistributedDataParallel(model, groupOn(new InstantBackend(null)));
    expect(again).toThrow(/another one reduces the gradient of "layers\.0"; dispose\(\) that one first/);
    parallel.dispose();
    const second = again();
    // Of the first one it is the second dispose(), which takes nothing from the second.
    parallel.dispose();
    expect(again).toThrow(RooflineError);
    second.dispose();
    model.dispose();
  });

  it('compares the models, and sends every tensor of the first rank, those too that are not trained', () => {
    const backend = new InstantBackend();
    const model = new Model();
    model.parameters[0]!.requiresGrad_(false);
    new DistributedDataParallel(model, groupOn(backend)).dispose();
    expect(kindsOf(backend)).toEqual(['allGather 16', ...Array<string>(count).fill('broadcast 16')]);
    model.dispose();
  });
});

describe('the modes', () => {
  it.each([
    ['naive', Array<string>(count).fill('allReduce 16'), count],
    ['flat', [`allReduce ${16 * count}`], 1],
    ['overlap', ['allReduce 32', 'allReduce 32'], 2],
  ] as const)('%s', (mode, calls, storages) => {
    const { backend, model, parallel } = parallelOf({ mode, bucketBytes: 2 * rowBytes });
    backward(model);
    expect(kindsOf(backend)).toEqual(calls);
    expect(storagesOf(model).size).toBe(storages);
    const { buckets } = parallel;
    expect(buckets.flatMap(({ names }) => names)).toEqual(['layers.3', 'layers.2', 'layers.1', 'layers.0']);
    expect(buckets.map(({ bytes }) => `allReduce ${bytes / 4}`)).toEqual(calls);
    parallel.dispose();
    backward(model);
    expect(backend.calls).toHaveLength(calls.length);
    model.dispose();
  });

  it.each(['naive', 'flat', 'overlap'] as const)('%s reduces what was frozen for a while', (mode) => {
    const { backend, model, parallel } = parallelOf({ mode, bucketBytes: rowBytes });
    backward(model);
    const before = {
      calls: kindsOf(backend),
      gradients: model.parameters.map(({ grad }) => grad!.toFlatArray()),
    };
    model.zeroGrad();
    for (const parameter of model.parameters) parameter.requiresGrad_(false);
    for (const parameter of model.parameters) parameter.requiresGrad_();
    backend.calls.length = 0;
    backward(model);
    expect(kindsOf(backend)).toEqual(before.calls);
    expect(model.parameters.map(({ grad }) => grad!.toFlatArray())).toEqual(before.gradients);
    // What is frozen at the end is released, too.
    model.zeroGrad();
    for (const parameter of model.parameters) parameter.requiresGrad_(false);
    parallel.dispose();
    for (const parameter of model.parameters) parameter.requiresGrad_();
    backend.calls.length = 0;
    backward(model);
    expect(backend.calls).toEqual([]);
    expect(model.parameters.map(({ grad }) => grad!.toFlatArray())).toEqual(before.gradients);
    model.dispose();
  });

  it('overlap sends the last parameters while the pass goes on, the others after it', () => {
    const { backend, model, parallel } = parallelOf({ bucketBytes: rowBytes });
    const sent: number[] = [];
    for (const parameter of model.parameters)
      parameter.onGradientAccumulated(() => sent.push(backend.calls.length));
    backward(model);
    expect(sent).toEqual([1, 2, 3, 4]);
    const addresses = backend.calls.map(({ input }) => input);
    expect(addresses).toEqual(model.parameters.map(({ grad }) => grad!.address).reverse());
    parallel.dispose();
    model.dispose();
  });

  it('gradients stay where they are from step to step, and are written anew', () => {
    const { model, parallel } = parallelOf({ mode: 'flat' });
    backward(model);
    const [first, values] = [[...storagesOf(model)], model.parameters[0]!.grad!.toFlatArray()];
    model.zeroGrad();
    backward(model);
    expect([...storagesOf(model)]).toEqual(first);
    expect(model.parameters[0]!.grad!.toFlatArray()).toEqual(values);
    parallel.dispose();
    model.dispose();
  });

  it.each(['flat', 'overlap'] as const)('%s copies back a gradient that is elsewhere', (mode) => {
    const model = new Model();
    model.parameters[1]!.grad = keep(full([16], 5));
    const parallel = new DistributedDataParallel(model, groupOn(new InstantBackend()), { mode });
    backward(model);
    expect(storagesOf(model).size).toBe(1);
    expect(model.parameters[1]!.grad!.toFlatArray()[0]).toBe(5 + 1 * 3 * 4);
    parallel.dispose();
    model.dispose();
  });
});

describe('the step', () => {
  const descriptions = ({ calls }: InstantBackend) => calls.map(({ description }) => description);
  const plain = 'allReduce(average) float32 [16]';

  it.each(['naive', 'overlap'] as const)('goes with the first gradients of each pass: %s', (mode) => {
    const { backend, model, parallel } = parallelOf({ mode, bucketBytes: rowBytes });
    expect(parallel.step).toBe(null);
    backward(model);
    for (const step of [0, 7]) {
      parallel.step = step;
      model.zeroGrad();
      parallel.noSync(() => backward(model));
      backward(model);
      backward(model);
    }
    parallel.step = null;
    backward(model);
    const rest = Array<string>(count - 1).fill(plain);
    const told = (step: number) => [`allReduce(average, step ${step}) float32 [16]`, ...rest];
    expect(descriptions(backend)).toEqual(
      [[plain, ...rest], told(0), told(0), told(7), told(7), [plain, ...rest]].flat(),
    );
    // Without a context nothing is compared where calls are not.
    expect(backend.calls.map(({ isCompared }) => isCompared)).toEqual(
      descriptions(backend).map((text) => text !== plain),
    );
    parallel.dispose();
    model.dispose();
  });

  it.each([-1, 0.5, Number.NaN, '3'])('cannot be %j', (step) => {
    const { model, parallel } = parallelOf();
    expect(() => (parallel.step = step as number)).toThrow(
      /DistributedDataParallel\.step: step must be a whole number of zero or more, not/,
    );
    expect(parallel.step).toBe(null);
    parallel.dispose();
    model.dispose();
  });
});

describe('noSync', () => {
  it.each(['naive', 'flat', 'overlap'] as const)('%s: nothing is sent before the pass outside', (mode) => {
    const { backend, model, parallel } = parallelOf({ mode });
    expect(parallel.noSync(() => (backward(model), 'given back'))).toBe('given back');
    backward(model, 2);
    expect(backend.calls).toHaveLength(mode === 'naive' ? count : 1);
    expect(model.parameters.map(({ grad }) => grad!.toFlatArray()[0])).toEqual([24 + 2, 12 + 1, 8, 6]);
    parallel.dispose();
    model.dispose();
  });

  it('ends with an error, and with a promise', async () => {
    const { backend, model, parallel } = parallelOf();
    expect(() =>
      parallel.noSync(() => {
        throw new Error('stop');
      }),
    ).toThrow('stop');
    const asynchronous = parallel.noSync(async () => {
      await Promise.resolve();
      backward(model);
    });
    await asynchronous;
    expect(backend.calls).toEqual([]);
    await expect(parallel.noSync(() => Promise.reject(new Error('later')))).rejects.toThrow('later');
    backward(model);
    expect(backend.calls).toHaveLength(1);
    parallel.dispose();
    model.dispose();
  });
});

describe('a pass', () => {
  it('of another model is left alone', () => {
    const { backend, model, parallel } = parallelOf({ findUnusedParameters: true });
    scope(() => sum(mul(ones([2]).requiresGrad_(), 2)).backward());
    expect(backend.calls).toEqual([]);
    parallel.dispose();
    model.dispose();
  });

  it('with unused parameters still sends zeros for them, names them and leaves them without a gradient', () => {
    const { backend, model, parallel } = parallelOf({ bucketBytes: rowBytes });
    expect(() => backward(model, 1)).toThrow(
      'on rank 4 the backward pass brought no gradient to layers.1, layers.2, layers.3; use them',
    );
    expect(kindsOf(backend)).toEqual(Array<string>(count).fill('allReduce 16'));
    expect(model.parameters.map(({ grad }) => grad !== null)).toEqual([true, false, false, false]);
    model.zeroGrad();
    backward(model);
    parallel.dispose();
    model.dispose();
  });

  it('that may leave parameters out takes the gradients of those alone that no rank has used', () => {
    // Its reductions leave the values as they are, so that no other rank has used any.
    const backend = new InstantBackend();
    const model = new Model();
    const parallel = new DistributedDataParallel(model, groupOn(backend), { findUnusedParameters: true });
    backward(model, 3);
    expect(model.parameters.map(({ grad }) => grad !== null)).toEqual([true, true, true, false]);
    parallel.dispose();
    model.dispose();
  });

  it.each([
    [8, 'p.0, p.1, p.2, p.3, p.4, p.5, p.6, p.7; use them'],
    [9, 'p.0, p.1, p.2, p.3, p.4, p.5, p.6, p.7, 1 more; use them'],
  ])('that leaves %i parameters out names eight of them', (unused, names) => {
    const parameters = Array.from({ length: unused + 1 }, () => keep(full([2], 1)).requiresGrad_());
    const named = parameters.map((parameter, i) => [i < unused ? `p.${i}` : 'used', parameter] as const);
    const parallel = new DistributedDataParallel(
      { namedParameters: () => named },
      groupOn(new InstantBackend()),
    );
    expect(() => scope(() => sum(parameters.at(-1)!).backward())).toThrow(names);
    parallel.dispose();
    for (const parameter of parameters) parameter.dispose();
  });

  it('sends a first bucket of 1 MiB, however large the others are', () => {
    const parameters = Array.from({ length: 3 }, () => keep(full([2 ** 17], 1)).requiresGrad_());
    const named = parameters.map((parameter, i) => [`p.${i}`, parameter] as const);
    const backend = new InstantBackend();
    const parallel = new DistributedDataParallel({ namedParameters: () => named }, groupOn(backend));
    backend.calls.length = 0;
    scope(() => sum(parameters.reduce((x, parameter) => mul(x, parameter))).backward());
    expect(kindsOf(backend)).toEqual([`allReduce ${2 ** 18}`, `allReduce ${2 ** 17}`]);
    parallel.dispose();
    for (const parameter of parameters) parameter.dispose();
  });

  it('that fails before anything was sent may be repeated', () => {
    const { backend, model, parallel } = parallelOf({ mode: 'flat' });
    const heal = failing(model.parameters[0]!);
    expect(() => backward(model)).toThrow('stop');
    heal();
    model.zeroGrad();
    backward(model);
    expect(backend.calls).toHaveLength(1);
    parallel.dispose();
    model.dispose();
  });

  it('whose gradients cannot all be sent after it leaves the ranks out of step, too', () => {
    const live = device('cpu').memoryStatistics().liveStorages;
    const { backend, model, parallel } = parallelOf({ mode: 'naive' });
    const second = model.parameters[1]!;
    // All its elements lie at one place.
    const remove = second.onGradientAccumulated(() => {
      second.grad!.dispose();
      second.grad = keep(expand(ones([1]), [16]));
    });
    expect(() => backward(model)).toThrow(/several elements/);
    expect(backend.calls).toHaveLength(2);
    remove();
    model.zeroGrad();
    expect(() => backward(model)).toThrow(/out of step/);
    expect(backend.calls).toHaveLength(2);
    model.zeroGrad();
    parallel.dispose();
    model.dispose();
    expect(device('cpu').memoryStatistics().liveStorages).toBe(live);
  });

  it('that fails half-way leaves the ranks out of step, and says so', () => {
    const { model, parallel } = parallelOf({ bucketBytes: rowBytes });
    const heal = failing(model.parameters[0]!);
    expect(() => backward(model)).toThrow('stop');
    heal();
    model.zeroGrad();
    expect(() => backward(model)).toThrow(/out of step/);
    parallel.dispose();
    model.dispose();
  });

  it('in which a hook takes a gradient away', () => {
    const { model, parallel } = parallelOf({ mode: 'flat' });
    // Fires after the bucket's own hook.
    const remove = model.parameters[0]!.onGradientAccumulated((parameter) => void (parameter.grad = null));
    model.parameters[0]!.grad = null;
    expect(() => backward(model)).toThrow(RooflineError);
    remove();
    parallel.dispose();
    model.dispose();
  });

  /** A pass that reaches the first parameter from two checkpoints. */
  const twice = ({ parameters: [weight] }: Model) =>
    scope(() => {
      const inner = (x: Tensor) => checkpoint((input) => mul(input, weight!), x);
      sum(inner(inner(ones([16]).requiresGrad_()))).backward();
    });

  it('that brings a gradient again from another checkpoint is refused only by overlap', () => {
    for (const mode of ['naive', 'flat', 'overlap'] as const) {
      const backend = new InstantBackend(null);
      const model = new Model();
      for (const parameter of model.parameters.slice(1)) parameter.requiresGrad_(false);
      const parallel = new DistributedDataParallel(model, groupOn(backend), { mode, bucketBytes: rowBytes });
      if (mode === 'overlap') expect(() => twice(model)).toThrow(DeviceError);
      else twice(model);
      expect(model.parameters[0]!.grad!.toFlatArray()[0]).toBe(mode === 'overlap' ? 1 : 2);
      backend.settle();
      parallel.dispose();
      model.dispose();
    }
  });

  it('that brings one again when the first has been sent and reduced is refused, too', () => {
    const model = new Model();
    for (const parameter of model.parameters.slice(1)) parameter.requiresGrad_(false);
    const parallel = new DistributedDataParallel(model, groupOn(new InstantBackend()));
    expect(() => twice(model)).toThrow(
      /"layers\.0" has got a further gradient after its bucket was sent.*'naive' or 'flat'/,
    );
    model.zeroGrad();
    expect(() => backward(model)).toThrow(/out of step/);
    parallel.dispose();
    model.dispose();
  });
});

/** Has the hooks of a parameter fail, until the function that this gives is called. */
function failing(parameter: Tensor): () => void {
  return parameter.onGradientAccumulated(() => {
    throw new Error('stop');
  });
}

describe('memory', () => {
  it.each(['naive', 'flat', 'overlap'] as const)('%s gives all back, in any order', (mode) => {
    const cpu = device('cpu');
    const { liveStorages } = cpu.memoryStatistics();
    for (const isFirst of [true, false]) {
      const { model, parallel } = parallelOf({ mode, findUnusedParameters: true });
      backward(model, 3);
      if (isFirst) parallel.dispose();
      model.dispose();
      parallel.dispose();
      parallel.dispose();
    }
    expect(cpu.memoryStatistics().liveStorages).toBe(liveStorages);
  });

  it('a gradient outlives its bucket', () => {
    const { model, parallel } = parallelOf({ mode: 'flat' });
    backward(model);
    parallel.dispose();
    expect(add(model.parameters[3]!.grad!, 1).toFlatArray()[0]).toBe(7);
    model.dispose();
  });
});

describe('is refused', () => {
  const group = groupOn(new InstantBackend());
  it('a model without anything to train, and one of tensors that ops made', () => {
    expect(() => new DistributedDataParallel({ namedParameters: () => [] }, group)).toThrow(
      'requires a gradient',
    );
    const made: ReplicatedModel = { namedParameters: () => [['made', mul(ones([2]).requiresGrad_(), 2)]] };
    expect(() => new DistributedDataParallel(made, group)).toThrow('"made" was made by an op');
  });
});
