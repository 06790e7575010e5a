import * as t from '../../../src/index.ts';
import type { DType } from '../../../src/index.ts';
import type { OpEntry } from '../programs/program.ts';
import { python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import { type TensorInput, drawDType, drawShape, drawTensor } from '../programs/tensor-input.ts';
import type { ValueKind } from '../programs/values.ts';
import { drawNumber, tensorOf } from './operands.ts';

/** Floating-point values outside an integer's range have no defined integer in PyTorch, so none are drawn. */
function valuesFor(from: DType, to: DType): ValueKind {
  return t.isFloatingPoint(from) && !t.isFloatingPoint(to) && to !== 'bool' ? 'ordinary' : 'any';
}

const cast: OpEntry = {
  name: 'cast',
  rule: 'exact',
  aliasing: true,
  draw: (random) => {
    const [from, to] = [drawDType(random), drawDType(random)];
    return {
      operands: [drawTensor(random, { dtype: from, values: valuesFor(from, to) })],
      ours: ([x]) => t.cast(tensorOf(x), to),
      torch: ([x]) => `${x}.to(${to})`,
    };
  },
};

const copy: OpEntry = {
  name: 'copy',
  rule: 'exact',
  aliasing: true,
  draw: (random) => ({
    operands: [drawTensor(random)],
    ours: ([x]) => t.copy(tensorOf(x)),
    torch: ([x]) => `${x}.clone()`,
  }),
};

const toDevice: OpEntry = {
  name: 'toDevice',
  rule: 'exact',
  draw: (random) => ({
    operands: [drawTensor(random)],
    ours: ([x], device) => t.scope(() => t.toDevice(t.toDevice(tensorOf(x), t.device('cpu')), device)),
    torch: ([x]) => `${x}.to('cpu')`,
  }),
};

/** A tensor to write to, and one to read: separate, or another view of the same memory that does not overlap. */
function drawTargetAndSource(random: RandomSource): TensorInput[] {
  const shape = drawShape(random);
  // A leaf that requires a gradient must not be written to.
  const target = drawTensor(random, { shape, requiresGrad: random.chance(0.1) ? undefined : false });
  if (random.chance(0.15)) return [target, { ...target, aliasOf: 0 }];
  const dtype = random.chance(0.6) ? target.dtype : drawDType(random);
  const values = valuesFor(dtype, target.dtype);
  return [target, drawTensor(random, { dtype, shape, requiresGrad: false, values })];
}

const writing = (name: 'addInPlace' | 'copyInPlace', torch: string): OpEntry => ({
  name,
  rule: 'exact',
  mutates: true,
  draw: (random) => ({
    operands: drawTargetAndSource(random),
    ours: ([target, source]) => {
      t[name](tensorOf(target), tensorOf(source));
      return tensorOf(target);
    },
    torch: ([target, source]) => `${target}.${torch}(${source})`,
  }),
});

/** A write into a tensor that is on the tape: recorded, or refused. */
const recordedWriting = (name: 'addInPlace' | 'copyInPlace', torch: string): OpEntry => ({
  name,
  rule: 'exact',
  draw: (random) => {
    const dtype = random.pick<DType>(['float32', 'float64', 'float16', 'bfloat16']);
    const target = drawTensor(random, { dtype, values: 'ordinary' });
    return {
      operands: [target, drawTensor(random, { dtype, shape: target.shape, values: 'ordinary' })],
      ours: ([target, source]) =>
        t.scope(() => {
          const result = t.mul(tensorOf(target), 2);
          t[name](result, t.mul(tensorOf(source), 3));
          return result;
        }),
      torch: ([target, source]) => `torch.mul(${target}, 2).${torch}(torch.mul(${source}, 3))`,
    };
  },
});

const fillInPlace: OpEntry = {
  name: 'fillInPlace',
  rule: 'exact',
  mutates: true,
  draw: (random) => {
    const x = drawTensor(random, { requiresGrad: false });
    const value = t.isFloatingPoint(x.dtype) ? drawNumber(random) : random.integer(-5, 5);
    return {
      operands: [x],
      ours: ([x]) => {
        t.fillInPlace(tensorOf(x), value);
        return tensorOf(x);
      },
      torch: ([x]) => `${x}.fill_(${python(value)})`,
    };
  },
};

export const copyOps: readonly OpEntry[] = [
  cast,
  copy,
  toDevice,
  writing('addInPlace', 'add_'),
  writing('copyInPlace', 'copy_'),
  recordedWriting('addInPlace', 'add_'),
  recordedWriting('copyInPlace', 'copy_'),
  fillInPlace,
];
