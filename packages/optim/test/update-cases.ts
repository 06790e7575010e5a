import { type Device, type Tensor, costOf, fromTypedArray, observeOps } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AdamW, GradientScaler, SGD, clipGradientNorm } from '../src/index.ts';
import { unscale } from '../src/gradients/unscale.ts';
import { makesStep, parameterOf, setGradient, slicesOfOne } from './parameters.ts';
import {
  type AdamWReference,
  type SGDReference,
  pseudoRandom,
  referenceAdamW,
  referenceNorm,
  referenceSGD,
  relativeError,
  worstRoundings,
} from './reference.ts';

/** More tensors than a launch takes; chunks of 4096 elements that are whole, cut off, tiny and empty. */
const shapes = [
  ...Array.from({ length: 90 }, (_, i) => [i]),
  [4095],
  [4096],
  [4097],
  [2, 4096],
  [3, 2731],
  [],
];

/** A step rounds fewer numbers than this on the way to one of its results. */
const roundingsOfStep = 16;

/** Large enough that each of them shows in the first digits. */
const adamw: AdamWReference = { learningRate: 0.05, betas: [0.8, 0.95], eps: 0.02, weightDecay: 0.4 };
const sgds: readonly SGDReference[] = [
  { learningRate: 0.1, momentum: 0, weightDecay: 0, nesterov: false },
  { learningRate: 0.1, momentum: 0, weightDecay: 0.3, nesterov: false },
  { learningRate: 0.1, momentum: 0.7, weightDecay: 0.3, nesterov: false },
  { learningRate: 0.1, momentum: 0.7, weightDecay: 0.3, nesterov: true },
];

const values = (tensor: Tensor) => tensor.toTypedArray() as Float32Array;
const float64 = (tensor: Tensor) => Float64Array.from(values(tensor));
const worstOf = (actual: readonly Tensor[], expected: readonly ArrayLike<number>[]) =>
  Math.max(...actual.map((tensor, i) => worstRoundings(values(tensor), expected[i]!)));

/** Every update of this package against float64 arithmetic, element by element. */
export function describeUpdates(device: Device): void {
  describe('AdamW', () => {
    it('updates parameters and both moments by the rule', () => {
      const parameters = shapes.map((shape, i) => parameterOf(shape, i, device));
      const references = parameters.map((parameter) => ({
        p: float64(parameter),
        m: new Float64Array(parameter.size),
        v: new Float64Array(parameter.size),
      }));
      const optimizer = new AdamW(parameters, adamw);
      const steps = 3;
      for (let step = 1; step <= steps; step++) {
        parameters.forEach((parameter, i) =>
          referenceAdamW(references[i]!, setGradient(parameter, 100 * step + i), step, adamw),
        );
        optimizer.step();
      }
      const { tensors } = optimizer.stateDict();
      const list = (name: string) => parameters.map((_, i) => tensors[`${name}.${i}`]!);
      const most = roundingsOfStep * steps;
      expect(
        worstOf(
          parameters,
          references.map(({ p }) => p),
        ),
      ).toBeLessThan(most);
      expect(
        worstOf(
          list('exp_avg'),
          references.map(({ m }) => m),
        ),
      ).toBeLessThan(most);
      expect(
        worstOf(
          list('exp_avg_sq'),
          references.map(({ v }) => v),
        ),
      ).toBeLessThan(most);
    });

    it('reads nothing but zeros out of a gradient of zeros', () => {
      const parameter = parameterOf([5], 1, device);
      const before = values(parameter);
      setGradient(parameter, 0, new Float32Array(5));
      new AdamW([parameter], { ...adamw, weightDecay: 0 }).step();
      expect(values(parameter)).toEqual(before);
    });

    it.each([
      ['a small gradient after a large one, of which nothing stays', [0, 0.5], [1, 1e-8]],
      ['gradients whose squares are infinite in float32', [0.9, 0.999], [1e20, -2e20]],
    ] as const)('follows the rule, to the digits of float32, with %s', (_, betas, gradients) => {
      const options = { ...adamw, betas };
      const parameter = parameterOf([5], 1, device);
      const reference = { p: float64(parameter), m: new Float64Array(5), v: new Float64Array(5) };
      const optimizer = new AdamW([parameter], options);
      gradients.forEach((gradient, i) => {
        setGradient(parameter, 0, new Float32Array(5).fill(gradient));
        referenceAdamW(reference, parameter.grad!.toFlatArray() as number[], i + 1, options);
        optimizer.step();
      });
      const { tensors } = optimizer.stateDict();
      const most = roundingsOfStep * gradients.length * 2 ** -24;
      for (const [ours, theirs] of [
        [parameter, reference.p],
        [tensors['exp_avg.0']!, reference.m],
        [tensors['exp_avg_sq.0']!, reference.v],
      ] as const)
        expect(relativeError(values(ours), theirs)).toBeLessThan(most);
    });

    it('counts 13 operations and 28 bytes an element', () => {
      const parameters = [parameterOf([7], 1, device), parameterOf([5], 2, device)];
      for (const parameter of parameters) setGradient(parameter, 3);
      let [flops, bytesMoved] = [0, 0];
      const stop = observeOps({
        before(op, inputs, outputs, attributes) {
          if (op.name !== 'adamw') return;
          const cost = costOf(op, inputs, outputs, attributes as never);
          flops += cost.flops;
          bytesMoved += cost.bytesMoved;
        },
      });
      new AdamW(parameters).step();
      stop();
      expect({ flops, bytesMoved }).toEqual({ flops: 12 * 13, bytesMoved: 12 * 28 });
    });
  });

  describe('SGD', () => {
    it.each(sgds)('updates parameters and momentum by the rule with %o', (options) => {
      const parameters = shapes.map((shape, i) => parameterOf(shape, i, device));
      const references = parameters.map((parameter) => ({
        p: float64(parameter),
        b: new Float64Array(parameter.size),
      }));
      const optimizer = new SGD(parameters, options);
      const steps = 3;
      for (let step = 0; step < steps; step++) {
        parameters.forEach((parameter, i) => {
          const { p, b } = references[i]!;
          referenceSGD(p, b, setGradient(parameter, 100 * step + i), options);
        });
        optimizer.step();
      }
      expect(
        worstOf(
          parameters,
          references.map(({ p }) => p),
        ),
      ).toBeLessThan(roundingsOfStep * steps);
      const buffers = Object.values(optimizer.stateDict().tensors);
      expect(buffers).toHaveLength(options.momentum === 0 ? 0 : parameters.length);
      const expected = references.map(({ b }) => b);
      expect(buffers.length === 0 || worstOf(buffers, expected) < roundingsOfStep * steps).toBe(true);
    });
  });

  describe('clipGradientNorm', () => {
    const withGradients = (scale: number) => {
      const parameters = shapes.map((shape, i) => parameterOf(shape, i, device));
      const gradients = parameters.map((parameter, i) =>
        setGradient(
          parameter,
          0,
          pseudoRandom(parameter.size, 7 + i).map((x) => x * scale),
        ),
      );
      return { parameters, gradients, norm: referenceNorm(gradients) };
    };

    // A norm of 1e-3, where PyTorch's 1e-6 in the denominator is a thousandth of it.
    it.each([1, 1e-5])('scales by maxNorm / (norm + 1e-6) for gradients of size %f', (scale) => {
      const { parameters, gradients, norm } = withGradients(scale);
      const maxNorm = norm / 4;
      const measured = clipGradientNorm(parameters, maxNorm).item();
      // Squares, and sums in pieces of at most 1024 or 4096 elements that a block's threads share out.
      expect(Math.abs(measured / norm - 1)).toBeLessThan(16 * 2 ** -24);
      const factor = maxNorm / (norm + 1e-6) / scale;
      const clipped = parameters.map(({ grad }) => values(grad!).map((x) => x / scale));
      const worst = clipped.map((actual, i) =>
        worstRoundings(
          actual,
          Float64Array.from(gradients[i]!, (x) => x * factor),
        ),
      );
      expect(Math.max(...worst)).toBeLessThan(roundingsOfStep);
    });

    it('adds up more partial sums than its last block has threads', () => {
      const parameters = Array.from({ length: 2100 }, () => parameterOf([1], 1, device));
      const gradients = parameters.map((parameter, i) => setGradient(parameter, i));
      const measured = clipGradientNorm(parameters, 1e9).item();
      expect(Math.abs(measured / referenceNorm(gradients) - 1)).toBeLessThan(16 * 2 ** -24);
    });

    it('leaves gradients below the limit to the last bit', () => {
      const { parameters, gradients, norm } = withGradients(1);
      clipGradientNorm(parameters, norm * 1.001);
      parameters.forEach(({ grad }, i) => expect(values(grad!)).toEqual(gradients[i]));
    });

    it('clips a norm just above the limit', () => {
      const { parameters, norm } = withGradients(1);
      clipGradientNorm(parameters, norm * 0.999);
      const clipped = referenceNorm(parameters.map(({ grad }) => values(grad!)));
      expect(Math.abs(clipped / (norm * 0.999) - 1)).toBeLessThan(1e-6);
    });

    // What torch.nn.utils.clip_grad_norm_ gives.
    it.each([
      [0, 0, [0, 0]],
      [1e-30, 0, [1e-30, 1]],
      [1e25, Infinity, [0, 0]],
      [Infinity, Infinity, [NaN, 0]],
      [-Infinity, Infinity, [NaN, 0]],
      [NaN, NaN, [NaN, NaN]],
    ])('of a gradient that holds %f', (value, norm, [first, last]) => {
      const parameter = parameterOf([4100], 1, device);
      const rest = last! * (value === 1e-30 ? 1e-30 : 1);
      const filler = Number.isFinite(value) ? value : 1;
      setGradient(parameter, 0, new Float32Array(4100).fill(filler).fill(value, 0, 1));
      expect(clipGradientNorm([parameter], 1).item()).toBe(norm);
      const clipped = values(parameter.grad!);
      expect([clipped[0], clipped[4099]]).toEqual([Math.fround(first!), Math.fround(rest)]);
    });

    it('counts a parameter that is given twice once', () => {
      const parameter = parameterOf([4], 1, device);
      setGradient(parameter, 0, Float32Array.of(3, 0, 4, 0));
      expect(clipGradientNorm([parameter, parameter], 2.5).item()).toBe(5);
      expect(worstRoundings(values(parameter.grad!), [1.5, 0, 2, 0])).toBeLessThan(roundingsOfStep);
    });
  });

  it.each([-1, NaN, 1e-30, Infinity])('steps are skipped where the tensor that says so is %f', (value) => {
    const parameter = parameterOf([5], 1, device);
    setGradient(parameter, 2);
    const before = values(parameter);
    const skip = fromTypedArray(Float32Array.of(value), [], { device });
    for (const make of [AdamW, SGD]) new make([parameter], { learningRate: 1 }).stepUnless(skip);
    expect(values(parameter)).toEqual(before);
  });

  describe('GradientScaler', () => {
    it('divides by the scale, and finds nothing in finite gradients', () => {
      const parameters = shapes.map((shape, i) => parameterOf(shape, i, device));
      const gradients = parameters.map((parameter, i) => setGradient(parameter, 50 + i));
      const scaler = new GradientScaler({ initialScale: 4096 });
      expect(makesStep(scaler, new SGD(parameters, { learningRate: 1 }))).toBe(true);
      parameters.forEach(({ grad }, i) =>
        expect(values(grad!)).toEqual(gradients[i]!.map((value) => value / 4096)),
      );
    });

    const scalesAfter = (scaler: GradientScaler, gradients: readonly number[]) => {
      const parameter = parameterOf([], 1, device);
      const optimizer = new SGD([parameter]);
      return gradients.map((gradient) => {
        setGradient(parameter, 0, Float32Array.of(gradient));
        scaler.step(optimizer);
        scaler.update();
        return scaler.currentScale;
      });
    };

    it('keeps its scale where another would be infinite, or have an infinite inverse', () => {
      const options = { growthInterval: 1, growthFactor: 4, backoffFactor: 0.25 };
      const large = new GradientScaler({ ...options, initialScale: 2 ** 124 });
      expect(scalesAfter(large, [1, 1, NaN])).toEqual([2 ** 126, 2 ** 126, 2 ** 124]);
      // The inverse of 2^-128 is infinite, and with it gradients would be for ever.
      const small = new GradientScaler({ ...options, initialScale: 2 ** -124 });
      expect(scalesAfter(small, [NaN, NaN, NaN, 1])).toEqual([2 ** -126, 2 ** -126, 2 ** -126, 2 ** -124]);
      expect(new GradientScaler().loadStateDict(small.stateDict())).toBeUndefined();
    });

    it('grows where a state has counted more good steps than the interval of now', () => {
      const scaler = new GradientScaler({ growthInterval: 3 });
      scaler.loadStateDict({ scale: 8, growthTracker: 1500 });
      expect(scalesAfter(scaler, [1, 1, 1, 1])).toEqual([16, 16, 16, 32]);
    });

    it('never takes back that one was found', () => {
      const found = fromTypedArray(Float32Array.of(1), [], { device });
      const scale = fromTypedArray(Float32Array.of(2), [], { device });
      unscale([fromTypedArray(Float32Array.of(2, 4), [2], { device })], found, scale);
      expect(found.item()).toBe(1);
    });

    it.each([
      [3.4028234663852886e38, 1, true],
      [-3.4028234663852886e38, 1, true],
      [Infinity, 1, false],
      [-Infinity, 2, false],
      [NaN, 2, false],
      // Finite, but not once it is unscaled.
      [3e38, 0.5, false],
    ])('a gradient with %f at a scale of %f makes a step: %s', (value, initialScale, steps) => {
      for (const [tensor, element] of [
        [0, 0],
        [90, 0],
        [91, 0],
        [91, 4095],
        [92, 4096],
        [95, 0],
      ] as const) {
        const all = [[3], ...shapes.slice(1)];
        const parameters = all.map((shape, i) => parameterOf(shape, i, device));
        parameters.forEach((parameter, i) => setGradient(parameter, i));
        const bad = values(parameters[tensor]!.grad!);
        bad[element] = value;
        setGradient(parameters[tensor]!, 0, bad);
        const scaler = new GradientScaler({ initialScale });
        expect(makesStep(scaler, new SGD(parameters))).toBe(steps);
      }
    });
  });

  describe('slices of one flat buffer', () => {
    // Whole chunks, aligned to 16 bytes or not, and the elements around them, which nothing may touch.
    const sizes = [4096, 5, 0, 8192, 4095, 1];

    it.each([
      { parameterGap: 1, gradientGap: 4 },
      { parameterGap: 4, gradientGap: 1 },
      { parameterGap: 0, gradientGap: 3 },
    ])('are updated alone, with gaps of %o', ({ parameterGap, gradientGap }) => {
      const p = slicesOfOne(sizes, parameterGap, 1, device);
      const g = slicesOfOne(sizes, gradientGap, 2, device);
      const [gapsOfP, gapsOfG] = [p.gaps(), g.gaps()];
      const parameters = p.slices.map((slice) => slice.requiresGrad_());
      const expected = parameters.map((parameter, i) => {
        const reference = {
          p: float64(parameter),
          m: new Float64Array(sizes[i]!),
          v: new Float64Array(sizes[i]!),
        };
        parameter.grad = g.slices[i]!;
        referenceAdamW(reference, values(g.slices[i]!), 1, adamw);
        referenceSGD(reference.p, reference.m.fill(0), values(g.slices[i]!), sgds[3]!);
        return reference.p;
      });
      new AdamW(parameters, adamw).step();
      new SGD(parameters, sgds[3]!).step();
      expect(worstOf(parameters, expected)).toBeLessThan(2 * roundingsOfStep);
      expect(p.gaps()).toEqual(gapsOfP);

      const gradients = g.slices.map(values);
      const norm = referenceNorm(gradients);
      const scaler = new GradientScaler({ initialScale: 2 });
      scaler.unscale(new SGD(parameters));
      expect(g.slices.map(values)).toEqual(gradients.map((gradient) => gradient.map((x) => x / 2)));
      expect(Math.abs(clipGradientNorm(parameters, 1).item() / (norm / 2) - 1)).toBeLessThan(16 * 2 ** -24);
      const factor = 1 / (norm / 2 + 1e-6) / 2;
      const clipped = gradients.map((gradient) => Float64Array.from(gradient, (x) => x * factor));
      expect(worstOf(g.slices, clipped)).toBeLessThan(roundingsOfStep);
      expect(g.gaps()).toEqual(gapsOfG);
    });
  });
}
