import {
  type Tensor,
  copy,
  cudaAvailable,
  device,
  fromTypedArray,
  keep,
  noGrad,
  ones,
  slice,
  zeros,
} from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AdamW, SGD, clipGradientNorm } from '../../src/index.ts';
import { parameterOf, setGradient } from '../parameters.ts';
import { type AdamWReference, pseudoRandom, referenceAdamW, relativeError } from '../reference.ts';

/** More tensors than a launch takes; chunks that are whole, cut off, tiny and empty. */
const shapes = [...Array.from({ length: 100 }, (_, i) => [i]), [4096], [3, 4096], [4099], [1000, 1001], []];
const options: AdamWReference = { learningRate: 3e-3, betas: [0.9, 0.95], eps: 1e-8, weightDecay: 0.1 };

/** Parameters on both devices with the same values and, after `setGradients`, the same gradients. */
function twins() {
  const on = (spec: 'cpu' | 'cuda') => shapes.map((shape, i) => parameterOf(shape, i, spec));
  const [cpu, cuda] = [on('cpu'), on('cuda')];
  const setGradients = (seed: number) => {
    for (const list of [cpu, cuda]) list.forEach((parameter, i) => setGradient(parameter, seed + i));
  };
  return { cpu, cuda, setGradients };
}

function worstError(ours: readonly Tensor[], expected: readonly Tensor[]): number {
  return Math.max(
    ...ours.map((tensor, i) => relativeError(tensor.toFlatArray(), expected[i]!.toFlatArray())),
  );
}

describe.skipIf(!cudaAvailable())('updates on a GPU', () => {
  it('AdamW follows the rule in float64', () => {
    const parameters = shapes.map((shape, i) => parameterOf(shape, i, 'cuda'));
    const references = parameters.map((parameter) => {
      const p = Float64Array.from(parameter.toFlatArray());
      return { p, m: new Float64Array(p.length), v: new Float64Array(p.length) };
    });
    const optimizer = new AdamW(parameters, options);
    for (let step = 1; step <= 4; step++) {
      parameters.forEach((parameter, i) => {
        referenceAdamW(references[i]!, setGradient(parameter, 1000 * step + i), step, options);
      });
      optimizer.step();
    }
    const errors = parameters.map((parameter, i) => relativeError(parameter.toFlatArray(), references[i]!.p));
    expect(Math.max(...errors)).toBeLessThan(3e-7);
  });

  it('AdamW updates data that are not aligned to 16 bytes', () => {
    const whole = fromTypedArray(pseudoRandom(10_001, 1), [10_001], { device: 'cuda' });
    const parameter = keep(slice(whole, 0, 1))
      .detach()
      .requiresGrad_();
    const p = Float64Array.from(parameter.toFlatArray());
    referenceAdamW(
      { p, m: new Float64Array(10_000), v: new Float64Array(10_000) },
      setGradient(parameter, 2),
      1,
      options,
    );
    new AdamW([parameter], options).step();
    expect(relativeError(parameter.toFlatArray(), p)).toBeLessThan(3e-7);
    expect(whole.toFlatArray()[0]).toBe(pseudoRandom(1, 1)[0]);
  });

  it.each([
    { momentum: 0, nesterov: false },
    { momentum: 0.9, nesterov: false },
    { momentum: 0.9, nesterov: true },
  ])('SGD agrees with the CPU with %o', (momentum) => {
    const { cpu, cuda, setGradients } = twins();
    const optimizers = [cpu, cuda].map(
      (list) => new SGD(list, { learningRate: 0.1, weightDecay: 0.01, ...momentum }),
    );
    for (let step = 0; step < 3; step++) {
      setGradients(1000 * step);
      for (const optimizer of optimizers) optimizer.step();
    }
    expect(worstError(cuda, cpu)).toBeLessThan(3e-7);
  });

  it.each([0.5, 1e6])('clipGradientNorm follows float64 for a limit of %f', (maxNorm) => {
    const { cuda, setGradients } = twins();
    setGradients(5);
    const gradients = () => cuda.map(({ grad }) => Float64Array.from(grad!.toFlatArray()));
    const before = gradients();
    const exact = Math.sqrt(
      before.reduce((sum, values) => values.reduce((inner, value) => inner + value ** 2, sum), 0),
    );
    expect(clipGradientNorm(cuda, maxNorm).item() / exact).toBeCloseTo(1, 6);
    const scale = Math.min(1, maxNorm / (exact + 1e-6));
    const errors = gradients().map((values, i) =>
      relativeError(
        [...values],
        before[i]!.map((value) => value * scale),
      ),
    );
    expect(Math.max(...errors)).toBeLessThan(3e-7);
  });

  it('AdamW moves 28 bytes a parameter at 90 % of the speed of a copy', () => {
    const gpu = device('cuda');
    const count = 2 ** 28;
    const parameter = zeros([count], { device: gpu, requiresGrad: true });
    parameter.grad = keep(ones([count], { device: gpu }));
    const optimizer = new AdamW([parameter]);
    const median = (run: () => void) => {
      const times = Array.from({ length: 12 }, () => {
        const start = gpu.recordEvent();
        run();
        const end = gpu.recordEvent();
        gpu.synchronize();
        return end.elapsedMs(start);
      });
      return times.sort((a, b) => a - b)[6]!;
    };
    const copyMs = median(() => noGrad(() => copy(parameter)).dispose());
    const stepMs = median(() => optimizer.step());
    const share = (28 * count) / stepMs / ((8 * count) / copyMs);
    expect(share).toBeGreaterThan(0.9);
    optimizer.dispose();
    parameter.dispose();
  });
});
