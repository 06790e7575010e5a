import {
  Generator,
  type Tensor,
  add,
  autocast,
  backward,
  cast,
  compile,
  fromTypedArray,
  keep,
  matmul,
  mul,
  noGrad,
  notEqual,
  randn,
  reshape,
  scope,
  slice,
  sum,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { expect } from 'vitest';
import { AdamW, GradientScaler, type Optimizer } from '../src/index.ts';
import { pseudoRandom } from './reference.ts';

export type AnyOptimizer = Optimizer<{ learningRate: number }>;
export type Make = (parameters: readonly Tensor[]) => AnyOptimizer;

const rows = 4;
export const layers = 4;
export const adamw: Make = (parameters) => new AdamW(parameters, { learningRate: 0.01, weightDecay: 0.1 });

/** A tower of products, each followed by a gain; the gradient of a weight of [width, width] is there before the next one's. */
export class Tower {
  readonly device: CudaDevice;
  readonly weights: readonly Tensor[];
  readonly gains: readonly Tensor[];
  readonly optimizer: AnyOptimizer;
  readonly scaler = new GradientScaler({ initialScale: 1024 });
  readonly width: number;
  dtype: 'float32' | 'bfloat16' = 'float32';
  /** A step: what it does with the tower and its input, and the loss. */
  step: (x: Tensor) => Tensor = (x) => this.train(x);

  constructor(device: CudaDevice, width: number, make: Make = adamw, inOneBuffer = false) {
    this.device = device;
    this.width = width;
    const flat = randn([layers * width * width], { device, generator: new Generator(1) });
    const scaled = mul(flat, 1 / Math.sqrt(width));
    this.weights = Array.from({ length: layers }, (_, i) => {
      const part = reshape(slice(scaled, 0, i * width * width, (i + 1) * width * width), [width, width]);
      return keep(inOneBuffer ? part : mul(part, 1)).requiresGrad_();
    });
    this.gains = this.weights.map((_, i) => this.tensor([width], 10 + i, true));
    this.optimizer = make(this.parameters);
  }

  get parameters(): readonly Tensor[] {
    return [...this.weights, ...this.gains];
  }

  tensor(shape: readonly number[], seed: number, requiresGrad = false): Tensor {
    const size = shape.reduce((product, length) => product * length, 1);
    return fromTypedArray(pseudoRandom(size, seed), shape, { device: this.device, requiresGrad });
  }

  loss(x: Tensor): Tensor {
    const forward = () =>
      this.weights.reduce((y, weight, i) => mul(matmul(y, weight), add(this.gains[i]!, 1)), x);
    const y = this.dtype === 'float32' ? forward() : autocast(this.dtype, forward);
    // Of any width, so that steps of one size lead downhill in all.
    return mul(sum(mul(y, y)), 1 / this.width);
  }

  train(x: Tensor): Tensor {
    const loss = this.loss(x);
    backward(loss);
    this.optimizer.step();
    this.optimizer.zeroGrad();
    return loss.detach();
  }
}

/** More than this is compared on the device, where NaN is like nothing. */
const mostHostBytes = 2 ** 22;

/** Expects the same elements, to the last bit; of a NaN's bits an emulated GPU's compiler decides. */
export function expectEqual(x: Tensor, expected: Tensor): void {
  if (x.byteLength <= mostHostBytes) expect(Buffer.compare(bytesOf(x), bytesOf(expected))).toBe(0);
  else expect(scope(() => noGrad(() => sum(cast(notEqual(x, expected), 'float32')).item()))).toBe(0);
}

function bytesOf(x: Tensor): Uint8Array {
  const values = x.toTypedArray();
  const { buffer, byteOffset, byteLength } =
    values instanceof Float32Array ? values.map((value) => (Number.isNaN(value) ? NaN : value)) : values;
  return new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
}

/** Two towers of the same values. */
export function twins(device: CudaDevice, width: number, make?: Make, inOneBuffer?: boolean): [Tower, Tower] {
  return [new Tower(device, width, make, inOneBuffer), new Tower(device, width, make, inOneBuffer)];
}

/** Runs both, one compiled, and compares losses and parameters bit by bit; gives the compiled one. */
export function expectSame(
  [eager, tower]: readonly [Tower, Tower],
  {
    before = () => {},
    after = () => {},
    steps = 6,
  }: {
    before?: (tower: Tower, step: number) => void;
    after?: (eager: Tower, tower: Tower) => void;
    steps?: number;
  } = {},
) {
  const compiled = compile((x: Tensor) => scope(() => tower.step(x)));
  for (let step = 0; step < steps; step++) {
    for (const each of [eager, tower]) {
      each.optimizer.learningRate = 0.01 / (step + 1);
      before(each, step);
    }
    const x = mul(tower.tensor([rows, tower.width], 50 + step), 0.5);
    const [expected, loss] = [scope(() => eager.step(x)), compiled(x)];
    expectEqual(loss, expected);
    tower.parameters.forEach((parameter, i) => expectEqual(parameter, eager.parameters[i]!));
    after(eager, tower);
  }
  expect(compiled.cache.hits).toBeGreaterThanOrEqual(steps - 3);
  return compiled;
}

/** What a compiled step runs. */
export function opsIn(compiled: ReturnType<typeof expectSame>): string[] {
  return compiled
    .explain()
    .at(-1)!
    .table.map(({ op }) => op);
}
