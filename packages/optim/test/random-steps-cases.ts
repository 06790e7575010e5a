import { type Tensor, cast, greater, noGrad } from '@roofline/tensor-core';
import type { Trainer } from '../../tensor-core/test/compile/random-steps/world.ts';
import { AdamW, GradientScaler, SGD, clipGradientNorm } from '../src/index.ts';
import type { AnyOptimizer } from './tower.ts';

const optimizers: Readonly<Record<string, (parameters: readonly Tensor[]) => AnyOptimizer>> = {
  adamw: (parameters) => new AdamW(parameters, { learningRate: 0.01, weightDecay: 0.1 }),
  'adamw of two groups': (parameters) =>
    new AdamW([
      { parameters: parameters.slice(0, 1), weightDecay: 0.5 },
      { parameters: parameters.slice(1), betas: [0.5, 0.5] },
    ]),
  sgd: (parameters) => new SGD(parameters, { learningRate: 0.1, weightDecay: 0.1 }),
  'sgd with momentum': (parameters) =>
    new SGD(parameters, { learningRate: 0.1, momentum: 0.9, nesterov: true }),
};

/** What is done between a backward pass and the optimizer's step, and the step. */
const steps: Readonly<
  Record<string, (optimizer: AnyOptimizer, loss: Tensor, scaler: GradientScaler) => void>
> = {
  'step()': (optimizer) => optimizer.step(),
  'clip, step()': (optimizer) => {
    clipGradientNorm(withGradients(optimizer), 0.01);
    optimizer.step();
  },
  'clip some, step()': (optimizer) => {
    clipGradientNorm(withGradients(optimizer).slice(0, 2), 0.01);
    optimizer.step();
  },
  'stepUnless(loss > 0)': (optimizer, loss) =>
    optimizer.stepUnless(noGrad(() => cast(greater(loss, 0), 'float32'))),
  'unscale, clip, scaler.step(), update()': (optimizer, _, scaler) => {
    scaler.unscale(optimizer);
    clipGradientNorm(withGradients(optimizer), 0.01);
    scaler.step(optimizer);
    scaler.update();
  },
};

function withGradients(optimizer: AnyOptimizer): Tensor[] {
  return [...optimizer.parameters()].filter(({ grad }) => grad !== null);
}

/** Each optimizer with each kind of step, keeping the gradients and forgetting them. */
export const trainers: readonly Trainer[] = Object.entries(optimizers).flatMap(([name, make]) =>
  Object.entries(steps).flatMap(([how, step]) =>
    [false, true].map((forgets): Trainer => ({
      text: `${name}: ${how}${forgets ? ', zeroGrad()' : ''}`,
      make(parameters) {
        const scaler = new GradientScaler({ initialScale: 1 });
        const optimizer = make(parameters);
        return (loss) => {
          step(optimizer, loss, scaler);
          if (forgets) optimizer.zeroGrad();
        };
      },
    })),
  ),
);
