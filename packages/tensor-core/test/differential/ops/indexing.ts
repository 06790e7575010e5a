import * as t from '../../../src/index.ts';
import type { OpEntry } from '../programs/program.ts';
import { drawDType, drawLength, drawMostlyFloat, drawShape, drawTensor } from '../programs/tensor-input.ts';
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

export const indexingOps: readonly OpEntry[] = [embedding, gather];
