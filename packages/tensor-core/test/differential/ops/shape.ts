import * as t from '../../../src/index.ts';
import type { DType, Shape } from '../../../src/index.ts';
import { type Call, type OpEntry, python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import {
  type TensorInput,
  drawDType,
  drawMostlyFloat,
  drawShape,
  drawTensor,
} from '../programs/tensor-input.ts';
import { drawDimension, tensorOf, tensorsOf } from './operands.ts';

/** A view of one tensor, which must share memory where PyTorch's does. */
const viewOp = (
  name: string,
  call: (random: RandomSource, x: TensorInput) => Omit<Call, 'operands'>,
): OpEntry => ({
  name,
  rule: 'exact',
  aliasing: true,
  draw: (random) => {
    const x = drawTensor(random);
    return { operands: [x], ...call(random, x) };
  },
});

/** Another shape of as many elements: lengths joined, split and shuffled; rarely one that does not fit. */
function drawReshaped(random: RandomSource, shape: Shape): number[] {
  let result = [...shape];
  for (let i = random.integer(0, 3); i > 0; i--) {
    const at = random.integer(0, Math.max(0, result.length - 1));
    if (random.chance(0.4)) result.splice(at, 0, 1);
    else if (result.length > 1) result.splice(at, 2, (result[at] ?? 1) * (result[at + 1] ?? 1));
    else if (result.length === 1 && result[0]! % 2 === 0) result = [2, result[0]! / 2];
  }
  if (random.chance(0.2)) result = random.shuffled(result);
  if (random.chance(0.2) && result.length > 0) result[random.integer(0, result.length - 1)] = -1;
  if (random.chance(0.04)) result.push(random.pick([2, -1, 0, -2]));
  return result;
}

const reshaping = (name: 'reshape' | 'view'): OpEntry =>
  viewOp(name, (random, { shape }) => {
    const to = drawReshaped(random, shape);
    return { ours: ([x]) => t[name](tensorOf(x), to), torch: ([x]) => `${x}.${name}(${python(to)})` };
  });

const permute = viewOp('permute', (random, { shape }) => {
  const order = random.shuffled(shape.map((_, i) => (random.chance(0.3) ? i - shape.length : i)));
  if (random.chance(0.04)) order[0] = random.integer(-2, 3);
  return { ours: ([x]) => t.permute(tensorOf(x), order), torch: ([x]) => `${x}.permute(${python(order)})` };
});

const transpose = viewOp('transpose', (random, { shape }) => {
  const [a, b] = [drawDimension(random, shape.length), drawDimension(random, shape.length)];
  return {
    ours: ([x]) => t.transpose(tensorOf(x), a, b),
    torch: ([x]) => `${x}.transpose(${a}, ${b})`,
  };
});

const expand = viewOp('expand', (random, { shape }) => {
  const to = shape.map((length) => (length === 1 ? random.integer(0, 4) : length));
  for (let i = random.integer(0, 2); i > 0; i--) to.unshift(random.integer(0, 3));
  // PyTorch makes a tensor of negative length from one without dimensions.
  if (random.chance(0.2) && shape.length > 0) to[random.integer(0, to.length - 1)] = -1;
  if (random.chance(0.04) && to.length > 0) to[random.integer(0, to.length - 1)] = 7;
  return { ours: ([x]) => t.expand(tensorOf(x), to), torch: ([x]) => `${x}.expand(${python(to)})` };
});

const slice = viewOp('slice', (random, { shape }) => {
  const dimension = drawDimension(random, shape.length);
  const bound = () => random.integer(-7, 7);
  const [start, end] = [bound(), random.chance(0.2) ? undefined : bound()];
  const step = random.chance(0.04) ? random.pick([0, -1]) : random.integer(1, 4);
  const place = dimension < 0 ? dimension + shape.length : dimension;
  return {
    ours: ([x]) => t.slice(tensorOf(x), dimension, start, end, step),
    torch: ([x]) =>
      place < 0
        ? `${x}.select(${dimension}, 0)`
        : `${x}[${':, '.repeat(place)}${start}:${end ?? ''}:${step}]`,
  };
});

const select = viewOp('select', (random, { shape }) => {
  const dimension = drawDimension(random, shape.length);
  const length = shape.at(dimension) ?? 1;
  const index = random.chance(0.1) ? random.pick([length, -length - 1]) : random.integer(-length, length - 1);
  return {
    ours: ([x]) => t.select(tensorOf(x), dimension, index),
    torch: ([x]) => `${x}.select(${dimension}, ${index})`,
  };
});

const squeeze = viewOp('squeeze', (random, { shape }) => {
  const ones = shape.flatMap((length, i) => (length === 1 ? [i] : []));
  const dimension =
    ones.length > 0 && random.chance(0.6) ? random.pick(ones) : drawDimension(random, shape.length);
  return {
    ours: ([x]) => t.squeeze(tensorOf(x), dimension),
    torch: ([x]) => `${x}.squeeze(${dimension})`,
  };
});

const unsqueeze = viewOp('unsqueeze', (random, { shape }) => {
  const dimension = drawDimension(random, shape.length + 1);
  return {
    ours: ([x]) => t.unsqueeze(tensorOf(x), dimension),
    torch: ([x]) => `${x}.unsqueeze(${dimension})`,
  };
});

const contiguous = viewOp('contiguous', () => ({
  ours: ([x]) => t.contiguous(tensorOf(x)),
  torch: ([x]) => `${x}.contiguous()`,
}));

const flatten = viewOp('flatten', (random, { shape }) => {
  const [start, end] = random.chance(0.2)
    ? [0, -1]
    : [drawDimension(random, shape.length), drawDimension(random, shape.length)];
  return {
    ours: ([x]) => t.flatten(tensorOf(x), start, end),
    torch: ([x]) => `torch.flatten(${x}, ${start}, ${end})`,
  };
});

const split = viewOp('split', (random, { shape }) => {
  const dimension = drawDimension(random, shape.length);
  const whole = shape.at(dimension) ?? 1;
  const first = random.integer(0, whole);
  const lengths = random.chance(0.5)
    ? random.integer(random.chance(0.05) ? 0 : 1, 4)
    : [first, whole - first];
  return {
    ours: ([x]) => t.split(tensorOf(x), lengths, dimension),
    torch: ([x]) => `torch.split(${x}, ${python(lengths)}, ${dimension})`,
  };
});

const chunk = viewOp('chunk', (random, { shape }) => {
  const [dimension, count] = [
    drawDimension(random, shape.length),
    random.integer(random.chance(0.05) ? 0 : 1, 4),
  ];
  return {
    ours: ([x]) => t.chunk(tensorOf(x), count, dimension),
    torch: ([x]) => `torch.chunk(${x}, ${count}, ${dimension})`,
  };
});

/** The dtypes of tensors that are joined: one, or occasionally several. */
function drawJoined(random: RandomSource): () => DType {
  const dtype = drawDType(random);
  return random.chance(0.25) ? () => drawDType(random) : () => dtype;
}

const concat: OpEntry = {
  name: 'concat',
  rule: 'exact',
  draw: (random) => {
    const shape = drawShape(random, random.chance(0.05) ? 0 : 1);
    const dimension = drawDimension(random, shape.length);
    const place = dimension < 0 ? dimension + shape.length : dimension;
    const dtype = drawJoined(random);
    const operands = Array.from({ length: random.integer(1, 3) }, () => {
      const own = shape.map((length, i) => (i === place ? random.integer(0, 3) : length));
      if (random.chance(0.02)) own.push(2);
      return drawTensor(random, { dtype: dtype(), shape: own });
    });
    return {
      operands,
      ours: (operands) => t.concat(tensorsOf(operands), dimension),
      torch: (names) => `torch.cat([${names.join(', ')}], ${dimension})`,
    };
  },
};

const stack: OpEntry = {
  name: 'stack',
  rule: 'exact',
  draw: (random) => {
    const shape = drawShape(random, 0, 3);
    const dimension = drawDimension(random, shape.length + 1);
    const dtype = drawJoined(random);
    const operands = Array.from({ length: random.integer(1, 3) }, () =>
      drawTensor(random, { dtype: dtype(), shape: random.chance(0.02) ? [...shape, 1] : shape }),
    );
    return {
      operands,
      ours: (operands) => t.stack(tensorsOf(operands), dimension),
      torch: (names) => `torch.stack([${names.join(', ')}], ${dimension})`,
    };
  },
};

const tril: OpEntry = {
  name: 'tril',
  rule: 'exact',
  draw: (random) => {
    const diagonal = random.integer(-4, 4);
    return {
      operands: [drawTensor(random, { shape: drawShape(random, random.chance(0.05) ? 0 : 2) })],
      ours: ([x]) => t.tril(tensorOf(x), diagonal),
      torch: ([x]) => `torch.tril(${x}, ${diagonal})`,
    };
  },
};

const causalMask: OpEntry = {
  name: 'causalMask',
  rule: 'exact',
  draw: (random) => ({
    operands: [drawTensor(random, { dtype: drawMostlyFloat(random), shape: drawShape(random, 2) })],
    ours: ([x]) => t.causalMask(tensorOf(x)),
    torch: ([x]) => `causal_mask(${x})`,
  }),
};

export const shapeOps: readonly OpEntry[] = [
  reshaping('reshape'),
  reshaping('view'),
  permute,
  transpose,
  expand,
  slice,
  select,
  squeeze,
  unsqueeze,
  contiguous,
  flatten,
  split,
  chunk,
  concat,
  stack,
  tril,
  causalMask,
];
