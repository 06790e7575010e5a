import { RooflineError } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { AdamW, type CosineScheduleOptions, GradientScaler, SGD, cosineSchedule } from '../src/index.ts';
import { parameterOf } from './parameters.ts';

// As from JavaScript, where no compiler reports a name that does not exist.
const parameters = () => [parameterOf([2], 1)];

describe('options that do not exist', () => {
  it.each<[name: string, nearest: string, make: (options: object) => unknown]>([
    ['lr', 'learningRate', (options) => new AdamW(parameters(), options)],
    ['weight_decay', 'weightDecay', (options) => new AdamW(parameters(), options)],
    ['beta', 'betas', (options) => new AdamW(parameters(), options)],
    ['momentun', 'momentum', (options) => new SGD(parameters(), options)],
    ['learning_rate', 'learningRate', (options) => new SGD([{ parameters: parameters(), ...options }])],
    ['growth_interval', 'growthInterval', (options) => new GradientScaler(options)],
    ['warmup_steps', 'warmupSteps', (options) => cosineSchedule(schedule(options))],
  ])('%s throws, and names %s', (name, nearest, make) => {
    const attempt = () => make({ [name]: 1 });
    expect(attempt).toThrow(RooflineError);
    expect(attempt).toThrow(expect.objectContaining({ code: 'OPTION' }));
    expect(attempt).toThrow(new RegExp(`"${name}".*${nearest}`));
  });

  it('are not those that do', () => {
    const all = { learningRate: 1, betas: [0.9, 0.99], eps: 1, weightDecay: 0 } as const;
    expect(() => new AdamW([{ parameters: parameters(), ...all }], all)).not.toThrow();
    const sgd = { learningRate: 1, momentum: 0.5, weightDecay: 0, nesterov: true };
    expect(() => new SGD([{ parameters: parameters(), ...sgd }], sgd)).not.toThrow();
    expect(() => cosineSchedule(schedule({ minimum: 0, warmupSteps: 1 }))).not.toThrow();
    const scaler = { initialScale: 2, growthFactor: 2, backoffFactor: 0.5, growthInterval: 1, enabled: true };
    expect(() => new GradientScaler(scaler)).not.toThrow();
  });
});

describe('values of options', () => {
  it('are the defaults where they are undefined', () => {
    const [group] = new SGD([{ parameters: parameters(), momentum: undefined }], { momentum: 0.5 }).groups;
    expect(group!.momentum).toBe(0.5);
    expect(new AdamW(parameters(), { eps: undefined }).groups[0]!.eps).toBe(1e-8);
  });

  it.each([-1, NaN, Infinity])('are refused where the learning rate is %d', (learningRate) => {
    expect(() => new SGD(parameters(), { learningRate })).toThrow(
      expect.objectContaining({
        code: 'RANGE',
        message: expect.stringContaining(
          `SGD: learningRate must be a finite number of zero or more, not ${learningRate}`,
        ),
      }),
    );
  });
});

function schedule(options: object): CosineScheduleOptions {
  return { maximum: 1, totalSteps: 2, ...options };
}
