import * as t from '../../../src/index.ts';
import { type Drawing, type Drawn, isFloat } from './drawing.ts';
import type { Trainer, World } from './world.ts';

/** The gradient of the mean of something times something else, so that no two elements' gradients are alike. */
export function drawBackward(drawing: Drawing): Drawn | null {
  const root = drawing.pick((each) => isFloat(each) && each.isTracked && each.name.startsWith('r'));
  if (!root) return null;
  const factor = drawing.random.chance(0.7) ? drawing.pickLike(root.shape, root.dtype) : null;
  return {
    operands: factor ? [root, factor] : [root],
    shape: [],
    isTracked: false,
    text: ([a, b]) => (b ? `backward of mean(mul(${a}, ${b}.detach()))` : `backward of sum(${a})`),
    run: ([a, b]) => {
      const loss = b ? t.mean(t.mul(a!, b.detach())) : t.sum(a!);
      loss.backward();
      return loss.detach();
    },
  };
}

/** A parameter's gradient, where it has one, as a reader sees it. */
export function drawGradient(drawing: Drawing): Drawn {
  const parameter = drawing.random.pick(drawing.parameters);
  return {
    operands: [parameter],
    shape: parameter.shape,
    isTracked: false,
    text: ([a]) => `noGrad: mul(${a}.grad ?? ${a}, 2)`,
    run: ([a]) => t.noGrad(() => t.mul(a!.grad ?? a!.detach(), 2)),
  };
}

/** What happens to gradients after a backward pass: a step by hand or by a trainer, or a read. */
export function drawUpdate(
  drawing: Drawing,
  loss: number,
  trainers: readonly Trainer[],
  trainer: number | null,
): Drawn {
  const { random, parameters } = drawing;
  if (trainer !== null) {
    return {
      operands: [drawing.registers[loss]!, ...parameters],
      text: ([a]) => `${trainers[trainer]!.text}, by ${a}`,
      run: ([a], world) => (world.train(a!), null),
    };
  }
  const descends = random.chance(0.7);
  return {
    operands: parameters,
    text: (names) => `${descends ? 'descend' : 'clamp the gradients of'} ${names.join(', ')}`,
    run: (_, world) => (t.noGrad(() => (descends ? descend(world) : clampGradients(world))), null),
  };
}

export function forgetting(drawing: Drawing): Drawn {
  return {
    operands: drawing.parameters,
    text: () => 'forget the gradients',
    run: (_, world) => (world.forgetGradients(), null),
  };
}

function descend({ parameters }: World): void {
  for (const parameter of parameters)
    if (parameter.grad) t.copyInPlace(parameter, t.sub(parameter, t.mul(parameter.grad, 0.125)));
}

function clampGradients({ parameters }: World): void {
  for (const { grad } of parameters) if (grad) t.copyInPlace(grad, t.clamp(grad, { min: -0.5, max: 0.5 }));
}
