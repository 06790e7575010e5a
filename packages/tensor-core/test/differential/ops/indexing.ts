import * as t from '../../../src/index.ts';
import type { DType } from '../../../src/index.ts';
import type { OpEntry } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import {
  type TensorInput,
  drawDType,
  drawLength,
  drawMostlyFloat,
  drawShape,
  drawTensor,
} from '../programs/tensor-input.ts';
import { indexInput } from './nn.ts';
import { drawDimension, tensorOf } from './operands.ts';

const embedding: OpEntry = {
  name: 'embedding',
  rule: 'exact',
  draw: (random) => {
    const [vocabulary, dimension] = [random.integer(1, 7), drawLength(random)];
    const weight = drawTensor(random, { dtype: drawMostlyFloat(random), shape: [vocabulary, dimension] });
    const shape = drawShape(random, 0, 3);
    const ids = Array.from({ length: 7 }, () =>
      random.chance(0.01) ? random.pick([vocabulary, -1]) : random.integer(0, vocabulary - 1),
    );
    return {
      operands: [weight, indexInput(ids, shape, random.chance(0.3) ? 'int32' : 'int64')],
      ours: ([weight, ids]) => t.embedding(tensorOf(weight), tensorOf(ids)),
      torch: ([weight, ids]) => `F.embedding(${ids}, ${weight})`,
      terms: shape.reduce((product, length) => product * Math.max(1, length), 1),
    };
  },
};

const gather: OpEntry = {
  name: 'gather',
  rule: 'exact',
  draw: (random) => {
    const dtype = random.chance(0.9) ? drawMostlyFloat(random) : drawDType(random);
    const x = drawTensor(random, { dtype, shape: drawShape(random, 1) });
    const dimension = drawDimension(random, x.shape.length);
    const length = x.shape.at(dimension) ?? 1;
    const place = dimension < 0 ? dimension + x.shape.length : dimension;
    const shape = x.shape.map((own, i) => (i === place ? random.integer(0, 4) : own));
    const ids = Array.from({ length: 11 }, () =>
      random.chance(0.01) ? random.pick([length, -1]) : random.integer(0, Math.max(0, length - 1)),
    );
    return {
      operands: [x, indexInput(ids, shape, random.chance(0.3) ? 'int32' : 'int64')],
      ours: ([x, index]) => t.gather(tensorOf(x), dimension, tensorOf(index)),
      torch: ([x, index]) => `torch.gather(${x}, ${dimension}, ${index}.long())`,
      terms: 4,
    };
  },
};

/** Indices without repetition, whose order PyTorch leaves open, except a few that are outside. */
function drawPlaces(random: RandomSource, length: number): number[] {
  const places = Array.from({ length }, (_, i) => i).sort(() => random.integer(-1, 1));
  const chosen = places.slice(0, random.integer(0, length));
  return random.chance(0.03) ? [...chosen, random.pick([length, -1])] : chosen;
}

function drawSlices(random: RandomSource, target: TensorInput, requiresGrad?: false) {
  const dimension = drawDimension(random, target.shape.length);
  const place = dimension < 0 ? dimension + target.shape.length : dimension;
  const places = drawPlaces(random, target.shape[place] ?? 1);
  const chosen = random.chance(0.02) ? places.length + 1 : places.length;
  const shape = target.shape.map((own, i) => (i === place ? chosen : own));
  const dtype = random.chance(0.97) ? target.dtype : drawDType(random);
  const source = drawTensor(random, { dtype, shape, requiresGrad, values: 'ordinary' });
  const index = indexInput(places, [places.length], random.chance(0.3) ? 'int32' : 'int64');
  return { dimension, index, source };
}

const indexCopyInPlace: OpEntry = {
  name: 'indexCopyInPlace',
  rule: 'exact',
  mutates: true,
  draw: (random) => {
    const requiresGrad = random.chance(0.1) ? undefined : false;
    const target = drawTensor(random, { shape: drawShape(random, 1), requiresGrad });
    const { dimension, index, source } = drawSlices(random, target, false);
    return {
      operands: [target, index, source],
      ours: ([target, index, source]) => {
        t.indexCopyInPlace(tensorOf(target), dimension, tensorOf(index), tensorOf(source));
        return tensorOf(target);
      },
      torch: ([target, index, source]) => `${target}.index_copy_(${dimension}, ${index}.long(), ${source})`,
    };
  },
};

/** The same into a tensor that is on the tape: recorded, or refused. */
const recordedIndexCopy: OpEntry = {
  name: 'indexCopyInPlace',
  rule: 'exact',
  draw: (random) => {
    const dtype = random.pick<DType>(['float32', 'float64', 'float16', 'bfloat16']);
    const target = drawTensor(random, { dtype, shape: drawShape(random, 1), values: 'ordinary' });
    const { dimension, index, source } = drawSlices(random, target);
    return {
      operands: [target, index, source],
      ours: ([target, index, source]) =>
        t.scope(() => {
          const result = t.mul(tensorOf(target), 2);
          t.indexCopyInPlace(result, dimension, tensorOf(index), t.mul(tensorOf(source), 3));
          return result;
        }),
      torch: ([target, index, source]) =>
        `torch.mul(${target}, 2).index_copy_(${dimension}, ${index}.long(), torch.mul(${source}, 3))`,
    };
  },
};

export const indexingOps: readonly OpEntry[] = [embedding, gather, indexCopyInPlace, recordedIndexCopy];
