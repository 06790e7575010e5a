import {
  type Tensor,
  add,
  backward,
  copyInPlace,
  keep,
  mul,
  noGrad,
  slice,
  sum,
  view,
  zeros,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { expect, it } from 'vitest';
import { AdamW, SGD, clipGradientNorm } from '../src/index.ts';
import { type Make, type Tower, adamw, expectEqual, expectSame, layers, opsIn, twins } from './tower.ts';

/** Norms of the towers' gradients lie above the first and below the second. */
const [small, large] = [0.01, 1e6];

/** A step with `change` between backward and the optimizer's step, which gives something to return. */
function stepWith(each: Tower, change: (each: Tower) => Tensor): (x: Tensor) => Tensor {
  return (x) => {
    const loss = each.loss(x);
    backward(loss);
    const seen = change(each);
    each.optimizer.step();
    each.optimizer.zeroGrad();
    return noGrad(() => add(loss.detach(), seen));
  };
}

/** Compiled steps that clip gradients against eager ones, bit by bit: the optimizer multiplies, not a pass of its own. */
export function describeClippedUpdates(device: CudaDevice, width: number): void {
  const same = (
    pair: [Tower, Tower],
    change: (each: Tower) => Tensor,
    more?: Parameters<typeof expectSame>[1],
  ) => {
    for (const each of pair) each.step = stepWith(each, change);
    return expectSame(pair, more);
  };
  const inUpdate = (compiled: ReturnType<typeof expectSame>) => {
    expect(opsIn(compiled)).toContain('clipByNorm_factor');
    expect(opsIn(compiled)).not.toContain('clipByNorm');
    compiled.dispose();
  };
  const inMemory = (compiled: ReturnType<typeof expectSame>) => {
    expect(opsIn(compiled)).toContain('clipByNorm');
    expect(opsIn(compiled)).not.toContain('clipByNorm_factor');
    compiled.dispose();
  };

  it.each([
    ['AdamW above the limit', adamw, small],
    ['AdamW below the limit', adamw, large],
    ['SGD', (parameters) => new SGD(parameters, { weightDecay: 0.1 }), small],
    ['SGD with momentum', (parameters) => new SGD(parameters, { momentum: 0.9, nesterov: true }), small],
  ] as [string, Make, number][])('%s multiplies', (_, make, limit) => {
    inUpdate(same(twins(device, width, make), ({ parameters }) => clipGradientNorm(parameters, limit)));
  });

  it('the copies in bfloat16 are of what it writes', () => {
    const pair = twins(device, width);
    for (const each of pair) each.dtype = 'bfloat16';
    const compiled = same(pair, ({ parameters }) => clipGradientNorm(parameters, small));
    expect(compiled.explain()[0]!.carriedCasts).toBe(layers);
    inUpdate(compiled);
  });

  it('a norm that is infinite or NaN leaves what eager code leaves', () => {
    inUpdate(
      same(twins(device, width), ({ parameters }) => clipGradientNorm(parameters, small), {
        before({ gains: [gain] }, step) {
          if (step >= 4) noGrad(() => copyInPlace(gain!, mul(gain!.detach(), step === 4 ? 1e30 : NaN)));
        },
      }),
    );
  });

  it('each of several groups is clipped', () => {
    const groups: Make = (parameters) =>
      new AdamW([
        { parameters: parameters.slice(0, 3), weightDecay: 0.5 },
        { parameters: parameters.slice(3), betas: [0.5, 0.5] },
      ]);
    inUpdate(same(twins(device, width, groups), ({ parameters }) => clipGradientNorm(parameters, small)));
  });

  it('parameters that are not clipped are not', () => {
    inMemory(same(twins(device, width), ({ weights }) => clipGradientNorm(weights, small)));
  });

  it('each of several limits holds', () => {
    const compiled = same(twins(device, width), ({ weights, gains }) =>
      add(clipGradientNorm(weights, small), clipGradientNorm(gains, 2 * small)),
    );
    inMemory(compiled);
  });

  it('who clips twice clips what is clipped', () => {
    const compiled = same(twins(device, width), ({ parameters }) =>
      add(clipGradientNorm(parameters, 2 * small), clipGradientNorm(parameters, small)),
    );
    // The first in memory, for the second norm.
    expect(opsIn(compiled).filter((name) => name.startsWith('clipByNorm'))).toEqual([
      'clipByNorm',
      'clipByNorm_factor',
    ]);
    compiled.dispose();
  });

  it('code that reads a clipped gradient, before or after the step, reads the clipped values', () => {
    inMemory(
      same(twins(device, width), ({ parameters, weights }) => {
        const norm = clipGradientNorm(parameters, small);
        return noGrad(() => add(norm, sum(mul(weights[1]!.grad!, weights[1]!.grad!))));
      }),
    );
    const pair = twins(device, width);
    for (const each of pair)
      each.step = (x) => {
        const loss = each.loss(x);
        backward(loss);
        clipGradientNorm(each.parameters, small);
        each.optimizer.step();
        const seen = noGrad(() => add(loss.detach(), sum(mul(each.weights[2]!.grad!, 3))));
        each.optimizer.zeroGrad();
        return seen;
      };
    inMemory(expectSame(pair));
  });

  it('gradients that stay are clipped', () => {
    const pair = twins(device, width);
    for (const each of pair)
      each.step = (x) => {
        each.optimizer.zeroGrad();
        const loss = each.loss(x);
        backward(loss);
        clipGradientNorm(each.parameters, small);
        each.optimizer.step();
        return loss.detach();
      };
    inMemory(
      expectSame(pair, {
        after: (eager, tower) =>
          tower.parameters.forEach(({ grad }, i) => expectEqual(grad!, eager.parameters[i]!.grad!)),
      }),
    );
  });

  it.each(['each its own', 'one flat buffer'])(
    'gradients that were there, in %s, and go on to grow are clipped',
    (where) => {
      const pair = twins(device, width);
      for (const each of pair) {
        const sizes = each.parameters.map(({ size }) => size);
        const flat = zeros([sizes.reduce((a, b) => a + b)], { device });
        let at = 0;
        for (const parameter of each.parameters) {
          const part = view(slice(flat, 0, at, (at += parameter.size)), parameter.shape);
          parameter.grad = keep(where === 'each its own' ? zeros(parameter.shape, { device }) : part);
        }
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          const norm = clipGradientNorm(each.parameters, small);
          each.optimizer.step();
          return noGrad(() => add(loss.detach(), norm));
        };
      }
      inMemory(
        expectSame(pair, {
          after: (eager, tower) =>
            tower.parameters.forEach(({ grad }, i) => expectEqual(grad!, eager.parameters[i]!.grad!)),
        }),
      );
    },
  );

  it('with a scaler, unscaled gradients are clipped, and a bad step is skipped', () => {
    for (const [make, isInUpdate] of [
      [adamw, false],
      [((parameters) => new SGD(parameters)) as Make, true],
    ] as const) {
      const pair = twins(device, width, make);
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(each.scaler.scale(loss));
          each.scaler.unscale(each.optimizer);
          clipGradientNorm(each.parameters, small);
          each.scaler.step(each.optimizer);
          each.scaler.update();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
      const compiled = expectSame(pair, {
        before({ gains: [gain] }, step) {
          if (step === 3) noGrad(() => copyInPlace(gain!, mul(gain!.detach(), 1e30)));
          if (step === 4) noGrad(() => copyInPlace(gain!, mul(gain!.detach(), 1e-30)));
        },
      });
      expect(pair.map(({ scaler }) => scaler.currentScale)).toEqual([512, 512]);
      // Steps that the device counts are made in one call.
      (isInUpdate ? inUpdate : inMemory)(compiled);
    }
  });

  it('the norm may be changed after the clipping', () => {
    inUpdate(
      same(twins(device, width), ({ parameters }) => {
        const norm = clipGradientNorm(parameters, small);
        noGrad(() => copyInPlace(norm, mul(norm, 100)));
        return norm;
      }),
    );
  });
}
