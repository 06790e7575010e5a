import { describe, expect, it } from 'vitest';
import { LossWatch } from '../../src/train/loss-watch.ts';

function usual(options: Partial<ConstructorParameters<typeof LossWatch>[0]> = {}, steps = 60): LossWatch {
  const watch = new LossWatch({ spike: 1, checksNorm: true, ...options });
  for (let step = 0; step < steps; step++) watch.see(step, 2 + (step % 2) / 10, 1);
  return watch;
}

describe('a watch of losses', () => {
  it('names the step of what is not finite', () => {
    expect(() => usual().see(60, NaN, 1)).toThrow('Step 60: the loss is NaN.');
    expect(() => usual().see(60, 2, Infinity)).toThrow(
      'Step 60: the norm of the gradients is Infinity, at a loss of 2.00.',
    );
    expect(() => usual({}, 0).see(0, Infinity, null)).toThrow('Step 0: the loss is Infinity.');
  });

  it('names a loss far above the usual, once there is one', () => {
    expect(() => usual().see(60, 3.4, 1)).toThrow(
      'Step 60: the loss is 3.40, more than 1 nats beyond the noise above the usual 2.05.',
    );
    // 6 deviations of 0.05 are noise.
    expect(() => usual().see(60, 3.3, 1)).not.toThrow();
    expect(() => usual({}, 49).see(49, 9, 1)).not.toThrow();
  });

  it('takes the noise of small batches for what it is', () => {
    const watch = new LossWatch({ spike: 1, checksNorm: true });
    for (let step = 0; step < 60; step++) watch.see(step, step % 2 === 0 ? 2 : 3, 1);
    expect(() => watch.see(60, 6, 1)).not.toThrow();
    expect(() => watch.see(61, 9, 1)).toThrow(/Step 61: the loss is 9.00/);
  });

  it('may be told to let them pass', () => {
    expect(() => usual({ spike: 0 }).see(60, 99, 1)).not.toThrow();
    expect(() => usual({ checksNorm: false }).see(60, 2, Infinity)).not.toThrow();
  });
});
