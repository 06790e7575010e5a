import {
  type Device,
  DisposedError,
  type Tensor,
  add,
  compile,
  copyInPlace,
  crossEntropy,
  fillInPlace,
  fromTypedArray,
  mul,
  noGrad,
  observeOps,
  scope,
  sum,
  zeros,
  zerosLike,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  AdamW,
  GradientScaler,
  type Optimizer,
  SGD,
  type SGDOptions,
  clipGradientNorm,
} from '../src/index.ts';
import { parameterOf, setGradient } from './parameters.ts';
import { pseudoRandom, referenceAdamW, worstRoundings } from './reference.ts';

/** More tensors than a launch takes, an empty one and one of several chunks among them. */
const shapes = [...Array.from({ length: 90 }, (_, i) => [i % 7]), [2, 4099], []];
const steps = 6;

type AnyOptimizer = Optimizer<{ learningRate: number }>;
type Make = (parameters: readonly Tensor[]) => AnyOptimizer;

const optimizers: readonly [name: string, make: Make][] = [
  ['AdamW', (parameters) => new AdamW(parameters, { learningRate: 0.05, betas: [0.8, 0.95] })],
  ['SGD', (parameters) => new SGD(parameters, { learningRate: 0.05 })],
  ['SGD with momentum', (parameters) => new SGD(parameters, { momentum: 0.9, weightDecay: 0.1 })],
];

/**
 * A training step whose inputs the host writes between steps, never inside of one: the gradients, and for the last
 * parameter but one the x of a loss Σ p·(p + x).
 */
class Training {
  readonly parameters: readonly Tensor[];
  readonly optimizer: AnyOptimizer;
  readonly scaler = new GradientScaler({ initialScale: 1024, growthInterval: 2 });
  readonly #learned: Tensor;
  readonly #input: Tensor;
  readonly #scaled: boolean;

  constructor(device: Device, make: Make, scaled: boolean) {
    this.parameters = shapes.map((shape, i) => parameterOf(shape, i, device));
    this.#learned = this.parameters.at(-2)!;
    this.#input = zerosLike(this.#learned);
    this.optimizer = make(this.parameters);
    this.#scaled = scaled;
    for (const parameter of this.parameters) parameter.grad = zerosLike(parameter);
  }

  /** The input of a step; `bad` is what makes its gradients overflow. */
  prepare(step: number, bad: number | null): void {
    this.optimizer.learningRate = 0.1 / (step + 1);
    this.parameters.forEach((parameter, i) => {
      const isLearned = parameter === this.#learned;
      const values = pseudoRandom(parameter.size, 100 * step + i);
      if (bad !== null && isLearned) values[0] = bad;
      const target = isLearned ? this.#input : parameter.grad!;
      scope(() => copyInPlace(target, fromTypedArray(values, target.shape, { device: target.device })));
    });
  }

  step(): void {
    scope(() => {
      noGrad(() => fillInPlace(this.#learned.grad!, 0));
      const loss = sum(mul(this.#learned, add(this.#learned, this.#input)));
      if (this.#scaled) this.scaler.scale(loss).backward();
      else loss.backward();
      if (this.#scaled) this.scaler.unscale(this.optimizer);
      clipGradientNorm(this.parameters, 5);
      if (this.#scaled) {
        this.scaler.step(this.optimizer);
        this.scaler.update();
      } else this.optimizer.step();
    });
  }

  /** All that steps change. */
  state() {
    const { tensors, metadata } = this.optimizer.stateDict();
    const values = (list: readonly Tensor[]) => list.map((tensor) => tensor.toFlatArray());
    const parameters = values(this.parameters);
    return { parameters, moments: values(Object.values(tensors)), metadata, scaler: this.scaler.stateDict() };
  }
}

/** The names of the ops that `fn` runs, in their order. */
function opsOf(fn: () => void): string[] {
  const ops: string[] = [];
  const stop = observeOps({ before: ({ name }) => void ops.push(name) });
  try {
    fn();
  } finally {
    stop();
  }
  return ops;
}

const badAt = (step: number) => [null, null, Infinity, null, NaN, null][step]!;

/** What changes from step to step, in compiled steps: written down once and done again without their JavaScript. */
export function describeCompiledSteps(device: Device): void {
  describe.each(optimizers)('compiled steps of %s', (_, make) => {
    it.each([false, true])('are equal to eager steps, to the last bit, with a scaler: %s', (scaled) => {
      const [eager, training] = [new Training(device, make, scaled), new Training(device, make, scaled)];
      const compiled = compile(() => training.step());
      for (let step = 0; step < steps; step++) {
        const bad = scaled ? badAt(step) : null;
        for (const each of [eager, training]) each.prepare(step, bad);
        eager.step();
        compiled();
        expect(training.state()).toEqual(eager.state());
      }
      expect(compiled.cache.hits).toBeGreaterThanOrEqual(steps - 3);
      compiled.dispose();
    });

    it('run the same ops in every step but the first', () => {
      const training = new Training(device, make, true);
      const runs = Array.from({ length: 4 }, (__, step) => {
        training.prepare(step, badAt(step));
        return opsOf(() => training.step());
      });
      expect(runs[2]).toEqual(runs[1]);
      expect(runs[3]).toEqual(runs[1]);
    });
  });

  it('a step that the device skips leaves AdamW as if it had not been, and the scale halved', () => {
    const options = { learningRate: 0.05, betas: [0.8, 0.95], eps: 1e-8, weightDecay: 0.1 } as const;
    const parameter = parameterOf([5], 1, device);
    const reference = {
      p: Float64Array.from(parameter.toFlatArray() as number[]),
      m: new Float64Array(5),
      v: new Float64Array(5),
    };
    const [optimizer, scaler] = [new AdamW([parameter], options), new GradientScaler({ initialScale: 8 })];
    let made = 0;
    for (const [i, bad] of [true, false, true, false, false].entries()) {
      const gradient = pseudoRandom(5, i);
      const scaled = gradient.map((x, element) => (bad && element === 4 ? NaN : x * scaler.currentScale));
      parameter.grad = fromTypedArray(scaled, [5], { device });
      const before = scaler.currentScale;
      scaler.step(optimizer);
      expect(scaler.hasSkipped(optimizer)).toBe(bad);
      scaler.update();
      expect(scaler.currentScale).toBe(bad ? before / 2 : before);
      if (!bad) referenceAdamW(reference, gradient, ++made, options);
      expect(worstRoundings(parameter.toTypedArray() as Float32Array, reference.p)).toBeLessThan(
        16 * (made + 1),
      );
      const { tensors, metadata } = optimizer.stateDict();
      expect(metadata.steps).toBe(`[${made}]`);
      expect(Object.keys(tensors)).toHaveLength(2);
      // A state continues, whether its steps were skipped or not.
      optimizer.loadStateDict({ tensors, metadata });
    }
  });

  it('AdamW goes on counting on the device where steps with and without a scaler mix', () => {
    const [early, late] = [parameterOf([3], 1, device), parameterOf([3], 2, device)];
    const plain = [parameterOf([3], 1, device), parameterOf([3], 2, device)];
    const [optimizer, expected] = [new AdamW([early, late]), new AdamW(plain)];
    const scaler = new GradientScaler({ initialScale: 1 });
    for (let step = 0; step < 4; step++) {
      // The second parameter lags a step behind.
      for (const [i, parameter] of [early, late].entries()) {
        if (step === 0 && i === 1) continue;
        for (const one of [parameter, plain[i]!])
          one.grad = fromTypedArray(pseudoRandom(3, step), [3], { device });
      }
      if (step % 2 === 0) optimizer.step();
      else {
        scaler.step(optimizer);
        scaler.update();
      }
      expected.step();
    }
    expect(optimizer.stateDict().metadata).toEqual({ optimizer: 'AdamW', steps: '[4,3]' });
    [early, late].forEach((parameter, i) =>
      expect(
        worstRoundings(parameter.toTypedArray() as Float32Array, plain[i]!.toTypedArray() as Float32Array),
      ).toBeLessThan(16),
    );
  });

  it('a compiled step is written down anew where steps came apart or are counted by the device, or momentum began or ended', () => {
    const gradient = () => fromTypedArray(pseudoRandom(3, 7), [3], { device });
    const make = () => [parameterOf([3], 1, device), parameterOf([3], 2, device)] as const;
    const [ours, theirs] = [make(), make()];
    const [adamw, expected] = [new AdamW(ours), new AdamW(theirs)];
    const [sgd, expectedSgd] = [new SGD(ours), new SGD(theirs)];
    for (const parameter of [...ours, ...theirs]) parameter.grad = gradient();
    const compiled = compile(() => {
      adamw.step();
      sgd.step();
    });
    const changes: Record<number, Partial<SGDOptions>> = {
      5: { momentum: 0.5 },
      7: { momentum: 0.25, nesterov: true },
      11: { momentum: 0, nesterov: false },
    };
    for (let step = 0; step < 14; step++) {
      if (step === 3) {
        // Without the second parameter.
        for (const [list, optimizer] of [
          [ours, adamw],
          [theirs, expected],
        ] as const) {
          list[1].grad = null;
          optimizer.step();
          list[1].grad = gradient();
        }
      }
      for (const { groups } of [sgd, expectedSgd]) Object.assign(groups[0]!, changes[step]);
      if (step === 9) for (const one of [adamw, expected]) new GradientScaler({ initialScale: 1 }).step(one);
      compiled();
      expected.step();
      expectedSgd.step();
      expect(ours.map((x) => x.toFlatArray())).toEqual(theirs.map((x) => x.toFlatArray()));
    }
    expect(adamw.stateDict().metadata).toEqual(expected.stateDict().metadata);
    expect(compiled.cache.hits).toBeGreaterThanOrEqual(2);
    compiled.dispose();
  });

  it('a step refuses hyperparameters out of range that a group was given, compiled or not, before it changes anything', () => {
    const parameters = [parameterOf([3], 1, device), parameterOf([3], 2, device)];
    const adamw = new AdamW(
      parameters.map((parameter) => ({ parameters: [parameter] })),
      { learningRate: 0.5 },
    );
    const sgd = new SGD(parameters, { learningRate: 0.5, momentum: 0.5 });
    parameters.forEach((parameter) => setGradient(parameter, 7));
    const compiled = compile(() => adamw.step());
    for (let call = 0; call < 3; call++) compiled();
    const before = [parameters.map((x) => x.toFlatArray()), adamw.stateDict().metadata.steps];
    for (const learningRate of [NaN, -1, undefined as never]) {
      adamw.groups[1]!.learningRate = sgd.groups[0]!.learningRate = learningRate;
      for (const step of [compiled, () => adamw.step(), () => sgd.step()])
        expect(step).toThrow(/learningRate must be a finite number of zero or more/);
    }
    Object.assign(sgd.groups[0]!, { learningRate: 0.5, momentum: 0, nesterov: true });
    expect(() => sgd.stepUnless(zeros([], { device }))).toThrow(/nesterov looks ahead along a momentum/);
    expect([parameters.map((x) => x.toFlatArray()), adamw.stateDict().metadata.steps]).toEqual(before);
    adamw.groups[1]!.learningRate = 0.25;
    const { misses } = compiled.cache;
    compiled();
    expect(adamw.stateDict().metadata.steps).toBe('[4,4]');
    expect(compiled.cache.misses).toBe(misses);
    compiled.dispose();
  });

  it('a compiled step neither sets hyperparameters nor loads or reads states, which its replays would not', () => {
    const optimizer = new SGD([parameterOf([3], 1, device)], { learningRate: 0.5 });
    const adamw = new AdamW([parameterOf([3], 1, device)]);
    const scaler = new GradientScaler({ initialScale: 4 });
    const refused: [() => unknown, RegExp][] = [
      [() => (optimizer.learningRate = 0.1), /a learning rate is set.* Do so before each call/],
      // The first value of a schedule may well be what is there.
      [() => (optimizer.groups[0]!.learningRate = 0.5), /learningRate of a group is set/],
      [() => Object.assign(optimizer.groups[0]!, { momentum: 1 }), /momentum of a group is set/],
      [() => optimizer.loadStateDict(optimizer.stateDict()), /the state of SGD is loaded/],
      [() => scaler.loadStateDict({ scale: 8, growthTracker: 0 }), /the state of a GradientScaler is loaded/],
      [
        () => adamw.stateDict().metadata.steps,
        /the steps in the state of AdamW are read.* Do so before each call/,
      ],
    ];
    for (const [fn, message] of refused) expect(() => compile(fn)()).toThrow(message);
    expect(optimizer.groups[0]).toMatchObject({ learningRate: 0.5, momentum: 0 });
    expect(scaler.currentScale).toBe(4);
  });

  it('a compiled function sees the learning rate and the scale that it reads', () => {
    const optimizer = new SGD([parameterOf([3], 1, device)], { learningRate: 0.5 });
    const scaler = new GradientScaler({ initialScale: 4 });
    const one = fromTypedArray(Float32Array.of(1), [1], { device });
    const read = compile((x: Tensor) => [mul(x, optimizer.learningRate), mul(x, scaler.currentScale)]);
    const seen = () => [0, 1].map(() => read(one).map((x) => x.item()));
    expect(seen()).toEqual([[0.5, 4], [0.5, 4]]); // prettier-ignore
    optimizer.learningRate = 0.25;
    scaler.loadStateDict({ scale: 8, growthTracker: 0 });
    expect(seen()).toEqual([[0.25, 8], [0.25, 8]]); // prettier-ignore
    scaler.scale(one);
    // It is on the device now, where only the device may look at it.
    expect(() => read(one)).toThrow(/the host reads a tensor/);
    read.dispose();
  });

  it('a compiled function sees the hyperparameters of groups that it reads', () => {
    const optimizer = new AdamW([parameterOf([3], 1, device)], { learningRate: 0.5 });
    const group = optimizer.groups[0]! as { learningRate: number; betas: readonly [number, number] };
    const one = fromTypedArray(Float32Array.of(1), [1], { device });
    const read = compile((x: Tensor) => [mul(x, group.learningRate), mul(x, group.betas[0])]);
    const seen = () => [0, 1].map(() => read(one).map((x) => x.item()));
    expect(seen()).toEqual([[0.5, Math.fround(0.9)], [0.5, Math.fround(0.9)]]); // prettier-ignore
    group.learningRate = 0.25;
    group.betas = [0.75, 0.5];
    expect(seen()).toEqual([[0.25, 0.75], [0.25, 0.75]]); // prettier-ignore
    read.dispose();
  });

  it('a scaler says at the first call what of a step must be compiled together', () => {
    const parameter = parameterOf([3], 1, device);
    const optimizer = new SGD([parameter], { learningRate: 0.5 });
    const together = /unscale\(\), step\(\) and update\(\).*call all of them in it, or all outside/;
    const scalerAfter = (run: (scaler: GradientScaler) => void) => {
      parameter.grad = zerosLike(parameter);
      const scaler = new GradientScaler();
      run(scaler);
      return scaler;
    };
    const stepInside = scalerAfter((scaler) => compile(() => scaler.step(optimizer))());
    expect(() => stepInside.update()).toThrow(together);
    const unscaledInside = scalerAfter((scaler) => compile(() => scaler.unscale(optimizer))());
    expect(() => unscaledInside.step(optimizer)).toThrow(together);
    const updateInside = scalerAfter((scaler) => scaler.step(optimizer));
    expect(() => compile(() => updateInside.update())()).toThrow(together);
    const inTwoCalls = scalerAfter((scaler) => compile(() => scaler.step(optimizer))());
    expect(() => compile(() => inTwoCalls.step(optimizer))()).toThrow(together);
    // It can be used again.
    inTwoCalls.step(optimizer);
    inTwoCalls.update();
  });

  it('a compiled step of an optimizer that has been disposed throws as an eager one does', () => {
    const parameter = parameterOf([3], 1, device);
    parameter.grad = zerosLike(parameter);
    for (const optimizer of [new SGD([parameter]), new AdamW([parameter])]) {
      const compiled = compile(() => optimizer.step());
      for (let step = 0; step < 3; step++) compiled();
      optimizer.dispose();
      expect(() => compiled()).toThrow(DisposedError);
      compiled.dispose();
    }
  });

  it.runIf(device.type === 'cpu')('a compiled step that failed is not counted', () => {
    const run = (wrap: (step: (targets: Tensor) => Tensor) => (targets: Tensor) => Tensor) => {
      const parameter = parameterOf([2, 3], 1, device);
      const optimizer = new AdamW([parameter], { learningRate: 0.1 });
      const step = wrap((targets) => {
        optimizer.zeroGrad();
        const loss = crossEntropy(parameter, targets);
        loss.backward();
        optimizer.step();
        return loss.detach();
      });
      return [1, 2, 0, 3, 1, 3, 2].map((target) => {
        const targets = fromTypedArray(Int32Array.of(0, target), [2], { device });
        if (target === 3) expect(() => step(targets)).toThrow('target 3');
        else step(targets);
        return [parameter.toFlatArray(), optimizer.stateDict().metadata];
      });
    };
    expect(run((step) => compile(step))).toEqual(run((step) => step));
  });

  it('a step that failed is not counted', () => {
    const parameter = parameterOf([3], 1, device);
    parameter.grad = zerosLike(parameter);
    const optimizer = new AdamW([parameter]);
    optimizer.step();
    // What devices run is no part of what users see of them.
    const runs = device as unknown as { run(op: { name: string }, ...rest: unknown[]): void };
    const run = runs.run.bind(device);
    runs.run = (op, ...rest) => {
      if (op.name === 'adamw') throw new Error('no memory');
      run(op, ...rest);
    };
    try {
      expect(() => optimizer.step()).toThrow('no memory');
    } finally {
      runs.run = run;
    }
    expect(optimizer.stateDict().metadata.steps).toBe('[1]');
    optimizer.step();
    expect(optimizer.stateDict().metadata.steps).toBe('[2]');
  });
}
