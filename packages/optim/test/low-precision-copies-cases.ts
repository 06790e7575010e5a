import {
  type AutocastDType,
  type Device,
  type Op,
  type CompileExplanation,
  type Tensor,
  add,
  applyOne,
  autocast,
  backward,
  compile,
  copyInPlace,
  defineOp,
  fromTypedArray,
  keep,
  mul,
  noGrad,
  observeOps,
  reshape,
  scope,
  slice,
  sum,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { expect, it } from 'vitest';
import { AdamW, GradientScaler, type Optimizer, SGD } from '../src/index.ts';
import { parameterOf } from './parameters.ts';
import { pseudoRandom } from './reference.ts';

/** One of more than a chunk among them. */
const shapes = [[3, 5], [4100], [8]] as const; // prettier-ignore
const longest = 4100;

/** What autocast casts for, as it does for matrix products, which the emulated GPU makes in float32 alone. */
const lowProduct: Op<undefined> = defineOp({
  name: 'lowProduct',
  autocast: 'lower',
  infer: ([a]) => [a!],
  saves: () => ({ inputs: [0, 1] }),
  gradient: ({ gradients: [g], input, needs }) =>
    [1, 0].map((other, i) => (needs[i] ? applyOne(lowProduct, [g!, input(other)], undefined) : null)),
  cuda: { kind: 'pointwise', expressions: () => ['a * b'] },
  cpu: { kind: 'onnx', build: (graph, [a, b]) => [graph.node('Mul', [a!, b!])] },
});

type AnyOptimizer = Optimizer<{ learningRate: number }>;
type Make = (parameters: readonly Tensor[]) => AnyOptimizer;
const adamw: Make = (parameters) => new AdamW(parameters, { learningRate: 0.05 });

/** Products in low precision, the first parameter also read as it is. */
class Training {
  readonly device: Device;
  readonly dtype: AutocastDType;
  readonly parameters: readonly Tensor[];
  readonly optimizer: AnyOptimizer;
  /** A step as an observer sees it. */
  observed: ((x: Tensor) => Tensor) | null = null;

  constructor(
    device: Device,
    dtype: AutocastDType = 'bfloat16',
    make = adamw,
    parameters: readonly Tensor[] = shapes.map((shape, i) => parameterOf(shape, i, device)),
  ) {
    this.device = device;
    this.dtype = dtype;
    this.parameters = parameters;
    this.optimizer = make(parameters);
  }

  /** Of the parameters, each with as many elements of `x` as it has. */
  forward(x: Tensor): Tensor {
    return autocast(this.dtype, () =>
      this.parameters
        .map((parameter) => {
          const part = reshape(slice(x, 0, 0, parameter.size), parameter.shape);
          return sum(applyOne(lowProduct, [part, parameter], undefined));
        })
        .reduce((total, term) => add(total, term)),
    );
  }

  loss(x: Tensor): Tensor {
    return add(mul(this.forward(x), 0.25), mul(sum(this.parameters[0]!), 0.125));
  }

  step(x: Tensor): Tensor {
    return scope(() => {
      const loss = this.loss(x);
      backward(loss);
      this.optimizer.step();
      this.optimizer.zeroGrad();
      return loss.detach();
    });
  }

  input(seed: number): Tensor {
    return fromTypedArray(pseudoRandom(longest, seed), [longest], { device: this.device });
  }

  values(): number[][] {
    return this.parameters.map((parameter) => parameter.toFlatArray() as number[]);
  }
}

/** Runs both in turn, and compares all bits; `between` does to each what is done between steps. */
function expectSame(
  eager: Training,
  training: Training,
  compiled: (x: Tensor) => Tensor,
  between: (training: Training, step: number) => void = () => {},
  steps = 7,
): void {
  for (let i = 0; i < steps; i++) {
    for (const each of [eager, training]) between(each, i);
    const x = training.input(50 + i);
    expect(compiled(x).toFlatArray()).toEqual(eager.step(x).toFlatArray());
    expect(training.values()).toEqual(eager.values());
  }
}

function carriedBy(compiled: { explain(): CompileExplanation[] }): number {
  return compiled.explain().at(-1)!.carriedCasts;
}

/** Compiled steps in low precision against eager ones, bit by bit, whatever happens between them. */
export function describeLowPrecisionCopies(device: CudaDevice): void {
  const pair = (...rest: [AutocastDType?, Make?]) =>
    [new Training(device, ...rest), new Training(device, ...rest)] as const;
  const elements = 15 + 4100 + 8;

  it.each([
    ['AdamW', adamw],
    ['SGD', (parameters) => new SGD(parameters, { learningRate: 0.05 })],
    ['SGD with momentum', (parameters) => new SGD(parameters, { momentum: 0.9, nesterov: true })],
  ] as [string, Make][])('%s writes them with the parameters', (_, make) => {
    for (const dtype of ['bfloat16', 'float16'] as const) {
      const [eager, training] = pair(dtype, make);
      const compiled = compile((x: Tensor) => training.step(x));
      expectSame(eager, training, compiled);
      // 6 bytes an element for a cast, 2 of which the optimizer moves instead.
      expect(compiled.explain()).toMatchObject([{ carriedCasts: 3, carriedBytes: 4 * elements }]);
      compiled.dispose();
    }
  });

  it.each([
    ['an eager step', (training, step) => void training.step(training.input(90 + step))],
    [
      'an eager step of another optimizer',
      ({ parameters }, step) => {
        const other = new SGD(parameters.slice(1, 2), { learningRate: 0.5 });
        parameters[1]!.grad = fromTypedArray(pseudoRandom(longest, step), [longest], {
          device: parameters[1]!.device,
        });
        other.step();
        other.zeroGrad();
      },
    ],
    [
      'a checkpoint',
      ({ parameters, optimizer }, step) => {
        optimizer.loadStateDict(optimizer.stateDict());
        for (const parameter of parameters) {
          const loaded = fromTypedArray(pseudoRandom(parameter.size, step), parameter.shape, {
            device: parameter.device,
          });
          noGrad(() => copyInPlace(parameter, loaded));
        }
      },
    ],
    [
      'a write through a view',
      ({ parameters: [parameter] }, step) =>
        scope(() => {
          const row = slice(parameter!.detach(), 0, 2, 3);
          copyInPlace(row, fromTypedArray(pseudoRandom(5, step), [1, 5], { device: row.device }));
        }),
    ],
    [
      'a step that is observed, call by call',
      (training, step) => {
        // Both do it eagerly, but one through a compiled function that has a program.
        const stop = observeOps({ before: () => {} });
        try {
          training.observed!(training.input(90 + step));
        } finally {
          stop();
        }
      },
    ],
  ] as [string, (training: Training, step: number) => void][])(
    'are cast anew after %s between replays',
    (_, write) => {
      const [eager, training] = pair();
      const compiled = compile((x: Tensor) => training.step(x));
      eager.observed = (x) => eager.step(x);
      training.observed = compiled;
      expectSame(eager, training, compiled, (each, step) => {
        if (step === 4 || step === 5) write(each, step);
      });
      expect(carriedBy(compiled)).toBe(3);
      expect(compiled.cache.hits).toBeGreaterThanOrEqual(3);
      compiled.dispose();
    },
  );

  it('are shared by the programs of a step and of an evaluation', () => {
    const [eager, training] = pair();
    const step = compile((x: Tensor) => training.step(x));
    const evaluate = compile((x: Tensor) => noGrad(() => training.forward(x)));
    for (let i = 0; i < 8; i++) {
      const x = training.input(i);
      const expected = scope(() => noGrad(() => eager.forward(x).item()));
      expect(evaluate(x).item()).toBe(expected);
      if (i % 3 === 2) continue;
      expect(step(x).item()).toBe(eager.step(x).item());
      expect(training.values()).toEqual(eager.values());
    }
    expect([step, evaluate].map(carriedBy)).toEqual([3, 3]);
    // An evaluation alone spares whole casts.
    expect(evaluate.explain()[0]!.carriedBytes).toBe(6 * elements);
    const live = () => device.memoryStatistics().liveStorages;
    const before = live();
    step.dispose();
    const x = training.input(99);
    expect(evaluate(x).item()).toBe(scope(() => noGrad(() => eager.forward(x).item())));
    const between = live();
    evaluate.dispose();
    expect(before - live()).toBeGreaterThanOrEqual(3);
    expect(between - live()).toBeGreaterThanOrEqual(3);
  });

  it('wait for the stream that casts them', () => {
    const [eager, training] = pair();
    const [first, second] = [0, 1].map(() =>
      compile((x: Tensor) => noGrad(() => mul(training.forward(x), 2))),
    );
    const stream = device.createStream();
    const x = training.input(1);
    const run = () => device.onStream(stream, () => second!(x).item());
    const expected = () => scope(() => noGrad(() => mul(eager.forward(x), 2).item()));
    const results = [first!(x).item(), run()];
    for (let i = 0; i < 3; i++) {
      for (const { parameters } of [eager, training])
        noGrad(() => copyInPlace(parameters[2]!, mul(parameters[2]!.detach(), 0.5)));
      device.synchronize();
      // Nothing waits between the two.
      const casting = first!(x);
      results.push(run(), casting.item(), expected());
      expect(new Set(results.slice(-3)).size).toBe(1);
    }
    expect([first!, second!].map(carriedBy)).toEqual([3, 3]);
    first!.dispose();
    second!.dispose();
  });

  it('stay as they are where the device skips a step', () => {
    const [eager, training] = pair('float16');
    const scalers = new Map(
      [eager, training].map((each) => [each, new GradientScaler({ initialScale: 1024 })]),
    );
    const step = (each: Training, x: Tensor) =>
      scope(() => {
        const scaler = scalers.get(each)!;
        const loss = each.loss(x);
        backward(scaler.scale(loss));
        scaler.step(each.optimizer);
        scaler.update();
        each.optimizer.zeroGrad();
        return loss.detach();
      });
    const compiled = compile((x: Tensor) => step(training, x));
    for (let i = 0; i < 9; i++) {
      const values = pseudoRandom(longest, i);
      if (i === 3 || i === 6) values[7] = Infinity;
      const x = fromTypedArray(values, [longest], { device });
      expect(compiled(x).item()).toEqual(step(eager, x).item());
      expect(training.values()).toEqual(eager.values());
    }
    expect(scalers.get(training)!.currentScale).toBe(256);
    expect(carriedBy(compiled)).toBe(3);
    compiled.dispose();
  });

  it('serve several uses and micro-batches of one step', () => {
    const [eager, training] = pair();
    for (const each of [eager, training]) {
      each.step = (x) =>
        scope(() => {
          const losses = [1, 0.5, -1].map((factor) => {
            const loss = each.loss(mul(x, factor));
            backward(loss);
            return loss.detach();
          });
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return losses.reduce((total, loss) => add(total, loss));
        });
    }
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled);
    expect(compiled.explain()).toMatchObject([{ carriedCasts: 9, carriedBytes: (3 * 6 - 2) * elements }]);
    compiled.dispose();
  });

  it('serve a forward pass after the update in the same step', () => {
    const [eager, training] = pair();
    for (const each of [eager, training]) {
      each.step = (x) =>
        scope(() => {
          const loss = each.loss(x);
          backward(loss);
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return noGrad(() => add(each.loss(x), loss));
        });
    }
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled);
    expect(carriedBy(compiled)).toBe(6);
    compiled.dispose();
  });

  it('of parameters in a flat buffer are of each alone', () => {
    const sizes = [15, 4100, 8];
    const [eager, training] = [0, 1].map(() => {
      const flat = fromTypedArray(pseudoRandom(4200, 3), [4200], { device });
      let start = 8;
      const parameters = sizes.map((size) => {
        const part = keep(slice(flat, 0, start, start + size)).requiresGrad_();
        start += size + 8;
        return part;
      });
      return new Training(device, 'bfloat16', adamw, parameters);
    }) as [Training, Training];
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled, ({ parameters }, step) => {
      if (step === 4) noGrad(() => copyInPlace(parameters[1]!, mul(parameters[1]!.detach(), 0.5)));
    });
    expect(carriedBy(compiled)).toBe(3);
    compiled.dispose();
  });

  it('are made only of parameters that are cast, of more than a launch takes', () => {
    const [eager, training] = [0, 1].map(() => {
      const parameters = Array.from({ length: 90 }, (_, i) => parameterOf([i % 5], i, device));
      const each = new Training(device, 'bfloat16', adamw, parameters);
      each.loss = (x) => {
        const terms = parameters.map((parameter, i) => {
          const part = slice(x, 0, i, i + parameter.size);
          const product = () => applyOne(lowProduct, [part, parameter], undefined);
          return sum(i % 3 === 0 ? mul(part, parameter) : autocast('bfloat16', product));
        });
        return terms.reduce((total, term) => add(total, term));
      };
      return each;
    }) as [Training, Training];
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled, undefined, 4);
    // A third is not cast, and a fifth is empty.
    expect(carriedBy(compiled)).toBe(48);
    compiled.dispose();
  });

  it('are not carried over a write of another kind, or where the cast is read after the update', () => {
    const [eager, training] = pair();
    for (const each of [eager, training]) {
      const [first, second, third] = each.parameters as [Tensor, Tensor, Tensor];
      const probe = parameterOf([8], 9, device);
      each.step = (x) =>
        scope(() => {
          probe.grad?.dispose();
          probe.grad = null;
          const late = autocast('bfloat16', () => applyOne(lowProduct, [probe, third], undefined));
          const loss = each.loss(x);
          backward(loss);
          each.optimizer.step();
          each.optimizer.zeroGrad();
          noGrad(() => copyInPlace(first, mul(first, 0.75)));
          // What the parameter was before the step.
          backward(sum(late));
          return add(loss.detach(), add(sum(probe.grad!), sum(second.detach())));
        });
    }
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled, undefined, 5);
    expect(compiled.cache.hits).toBeGreaterThanOrEqual(2);
    // The probe's, the second parameter's, and of the third the cast whose readers are done before the update.
    expect(carriedBy(compiled)).toBe(3);
    compiled.dispose();
  });

  it('are of one dtype, where a step casts to both', () => {
    const [eager, training] = pair();
    for (const each of [eager, training]) {
      each.loss = (x) => {
        const inBoth = (['float16', 'bfloat16'] as const).map((dtype) => {
          const other = new Training(device, dtype, () => each.optimizer, each.parameters);
          return other.forward(x);
        });
        return add(...(inBoth as [Tensor, Tensor]));
      };
    }
    const compiled = compile((x: Tensor) => training.step(x));
    expectSame(eager, training, compiled, undefined, 5);
    expect(carriedBy(compiled)).toBe(3);
    compiled.dispose();
  });

  it('are given back when a parameter is freed', () => {
    const live = () => device.memoryStatistics().liveStorages;
    const training = new Training(device);
    const compiled = compile((x: Tensor) => noGrad(() => training.forward(x)));
    const x = training.input(1);
    for (let i = 0; i < 3; i++) scope(() => compiled(x));
    const before = live();
    training.parameters[0]!.dispose();
    expect(() => compiled(x)).toThrow('disposed');
    // The parameter, and the copies of all three.
    expect(live()).toBeLessThanOrEqual(before - 4);
    compiled.dispose();
  });
}
