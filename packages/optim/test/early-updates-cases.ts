import {
  add,
  backward,
  cast,
  copyInPlace,
  fillInPlace,
  greater,
  matmul,
  mul,
  noGrad,
  sum,
  transpose,
} from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { describe, expect, it } from 'vitest';
import { AdamW, SGD, clipGradientNorm } from '../src/index.ts';
import { type Make, type Tower, adamw, expectEqual, expectSame, layers, opsIn, twins } from './tower.ts';

/** The ops after the first update, and how many updates there are. */
function updatesIn(compiled: ReturnType<typeof expectSame>): { updates: number; behindTheFirst: string[] } {
  const names = opsIn(compiled);
  const isUpdate = (name: string) => /^(adamw|adamwByProducts|sgd|sgdMomentum)$/.test(name);
  const behindTheFirst = names.slice(names.findIndex(isUpdate)).filter((name) => !isUpdate(name));
  return { updates: names.filter(isUpdate).length, behindTheFirst };
}

/**
 * Compiled steps whose parameters are updated as soon as their gradients are final against eager ones, bit by bit. A gradient
 * of [width, width] must fill half of the device's L2 cache.
 */
export function describeEarlyUpdates(device: CudaDevice, width: number): void {
  const early = (compiled: ReturnType<typeof expectSame>, updates = layers) => {
    const found = updatesIn(compiled);
    expect(found.updates).toBeGreaterThanOrEqual(updates);
    expect(found.behindTheFirst.filter((name) => name === 'matmul').length).toBeGreaterThan(1);
    compiled.dispose();
  };
  const together = (compiled: ReturnType<typeof expectSame>) => {
    const { updates, behindTheFirst } = updatesIn(compiled);
    expect(updates).toBe(1);
    expect(behindTheFirst).not.toContain('matmul');
    compiled.dispose();
  };

  it.each([
    ['AdamW', adamw],
    ['SGD', (parameters) => new SGD(parameters, { weightDecay: 0.1 })],
    ['SGD with momentum', (parameters) => new SGD(parameters, { momentum: 0.9, nesterov: true })],
  ] as [string, Make][])('%s runs during the backward pass', (_, make) => {
    early(expectSame(twins(device, width, make)));
  });

  it('write the copies that autocast would cast', () => {
    const pair = twins(device, width);
    for (const each of pair) each.dtype = 'bfloat16';
    const compiled = expectSame(pair, {
      before({ weights: [, second] }, step) {
        if (step === 4) noGrad(() => copyInPlace(second!, mul(second!.detach(), 0.5)));
      },
    });
    expect(compiled.explain()[0]!.carriedCasts).toBe(layers);
    // Where updates multiply their gradients themselves, all share a launch.
    if (opsIn(compiled).includes('adamwByProducts')) compiled.dispose();
    else early(compiled);
  });

  it('hold the gradients of few parameters at a time', () => {
    const pair = twins(device, width);
    const compiled = expectSame(pair);
    const kept = expectSame(
      pair.map((each) => {
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          clipGradientNorm(each.parameters, 1e6);
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
        return each;
      }) as unknown as [Tower, Tower],
    );
    const arenaBytes = ({ explain }: typeof compiled) => explain()[0]!.arenaBytes;
    // On an emulated GPU both fit into the smallest segment.
    if (width > 1000) expect(arenaBytes(kept) - arenaBytes(compiled)).toBeGreaterThan(4 * width * width);
    kept.dispose();
    compiled.dispose();
  });

  describe('wait', () => {
    it('for the norm of all gradients', () => {
      const pair = twins(device, width);
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          const norm = clipGradientNorm(each.parameters, 0.5);
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return add(loss.detach(), norm);
        };
      together(expectSame(pair));
    });

    it.each([
      ['AdamW', adamw],
      ['SGD', (parameters) => new SGD(parameters)],
    ] as [string, Make][])('for a scaler, which may skip the step, with %s', (_, make) => {
      const pair = twins(device, width, make);
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(each.scaler.scale(loss));
          each.scaler.step(each.optimizer);
          each.scaler.update();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
      const compiled = expectSame(pair, {
        before({ gains: [gain] }, step) {
          // An infinite loss, and then a finite one again.
          if (step === 3) noGrad(() => fillInPlace(gain!, 1e30));
          if (step === 4) noGrad(() => fillInPlace(gain!, 0.25));
        },
        steps: 7,
      });
      expect(pair[1].scaler.currentScale).toBe(512);
      expect(pair[0].scaler.currentScale).toBe(512);
      together(compiled);
    });

    it('for what says whether the step is skipped, where that is made after the backward pass', () => {
      const pair = twins(device, width, (parameters) => new SGD(parameters, { momentum: 0.9 }));
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          // Not 0 in the steps that the test fills the first gain for.
          const skip = noGrad(() => cast(greater(sum(each.gains[0]!), width), 'float32'));
          each.optimizer.stepUnless(skip);
          each.optimizer.zeroGrad();
          return add(loss.detach(), skip);
        };
      const compiled = expectSame(pair, {
        before({ gains: [gain] }, step) {
          if (step === 3) noGrad(() => fillInPlace(gain!, 2));
          if (step === 5) noGrad(() => fillInPlace(gain!, 0.5));
        },
        steps: 8,
      });
      const { updates, behindTheFirst } = updatesIn(compiled);
      expect(updates).toBe(1);
      expect(behindTheFirst).not.toContain('matmul');
      compiled.dispose();
    });

    it('for the last of several micro-batches', () => {
      const pair = twins(device, width);
      for (const each of pair)
        each.step = (x) => {
          const losses = [1, -0.5].map((factor) => {
            const loss = each.loss(mul(x, factor));
            backward(loss);
            return loss.detach();
          });
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return losses.reduce((total, loss) => add(total, loss));
        };
      early(expectSame(pair));
    });

    it('for the last use of a parameter that is used twice', () => {
      const pair = twins(device, width);
      for (const each of pair)
        each.step = (x) => {
          const [first] = each.weights;
          // Of the first weight, the beginning of the tower and its end.
          const loss = add(each.loss(x), sum(matmul(mul(x, 0.5), transpose(first!, 0, 1))));
          backward(loss);
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
      early(expectSame(pair), layers - 1);
    });

    it.each(['float32', 'bfloat16'] as const)('for code that reads a parameter as it was, in %s', (dtype) => {
      const pair = twins(device, width);
      for (const each of pair) {
        each.dtype = dtype;
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          const before = noGrad(() => each.loss(mul(x, 0.25)));
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return noGrad(() => add(add(loss.detach(), before), each.loss(mul(x, -0.25))));
        };
      }
      const compiled = expectSame(pair);
      expect(compiled.explain()[0]!.carriedCasts).toBe(dtype === 'float32' ? 0 : 3 * layers);
      compiled.dispose();
    });

    it('for who writes a parameter in between', () => {
      const pair = twins(device, width);
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          noGrad(() => copyInPlace(each.weights[3]!, mul(each.weights[3]!, 0.75)));
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
      early(expectSame(pair), layers - 1);
    });

    it('for who changes a gradient in between', () => {
      const pair = twins(device, width);
      for (const each of pair)
        each.step = (x) => {
          const loss = each.loss(x);
          backward(loss);
          const { grad } = each.weights[3]!;
          noGrad(() => copyInPlace(grad!, mul(grad!, 0.5)));
          each.optimizer.step();
          each.optimizer.zeroGrad();
          return loss.detach();
        };
      early(expectSame(pair), layers - 1);
    });
  });

  it('leave gradients that the program looks at', () => {
    const pair = twins(device, width);
    for (const each of pair)
      each.step = (x) => {
        each.optimizer.zeroGrad();
        const loss = each.loss(x);
        backward(loss);
        each.optimizer.step();
        return loss.detach();
      };
    const compiled = expectSame(pair, {
      after: (eager, tower) =>
        tower.parameters.forEach(({ grad }, i) => expectEqual(grad!, eager.parameters[i]!.grad!)),
    });
    together(compiled);
  });

  it('leave a gradient that is read after the step', () => {
    const pair = twins(device, width);
    for (const each of pair)
      each.step = (x) => {
        const loss = each.loss(x);
        backward(loss);
        each.optimizer.step();
        const seen = noGrad(() => add(loss.detach(), sum(mul(each.weights[2]!.grad!, each.weights[2]!))));
        each.optimizer.zeroGrad();
        return seen;
      };
    early(expectSame(pair), layers - 1);
  });

  it('are those of each group and of each optimizer by its own numbers', () => {
    const groups: Make = (parameters) =>
      new AdamW([
        { parameters: parameters.slice(0, 3), weightDecay: 0.5 },
        { parameters: parameters.slice(3), betas: [0.5, 0.5] },
      ]);
    const pair = twins(device, width, groups);
    early(expectSame(pair));
  });

  it('are of each slice of one buffer', () => {
    early(expectSame(twins(device, width, adamw, true)));
  });
}
