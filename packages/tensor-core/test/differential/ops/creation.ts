import * as t from '../../../src/index.ts';
import type { Device, DType, Shape, Tensor, TensorOptions } from '../../../src/index.ts';
import { type OpEntry, python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import { drawDType, drawShape, drawTensor } from '../programs/tensor-input.ts';
import { drawNumber, tensorOf } from './operands.ts';

type Fill = 'zeros' | 'ones' | 'empty';

const filled = (name: Fill): OpEntry => ({
  name,
  rule: name === 'empty' ? 'shape' : 'exact',
  draw: (random) => {
    const [shape, dtype] = [drawOddShape(random), drawDType(random)];
    return {
      operands: [],
      ours: (_, device) => t[name](shape, { dtype, device }),
      torch: () => `torch.${name}(${python(shape)}, dtype=${dtype})`,
    };
  },
});

/** A shape, or rarely something that is not one. */
function drawOddShape(random: RandomSource): Shape {
  const shape = drawShape(random);
  return random.chance(0.03) ? [...shape, -1] : shape;
}

const full: OpEntry = {
  name: 'full',
  rule: 'exact',
  draw: (random) => {
    const [shape, dtype] = [drawOddShape(random), drawDType(random)];
    const value = t.isFloatingPoint(dtype) ? drawNumber(random) : random.integer(-5, 5);
    return {
      operands: [],
      ours: (_, device) => t.full(shape, value, { dtype, device }),
      torch: () => `torch.full(${python(shape)}, ${python(value)}, dtype=${dtype})`,
    };
  },
};

const like = (name: 'zerosLike' | 'onesLike', torch: string): OpEntry => ({
  name,
  rule: 'exact',
  draw: (random) => ({
    operands: [drawTensor(random)],
    ours: ([x]) => t[name](tensorOf(x)),
    torch: ([x]) => `torch.${torch}(${x})`,
  }),
});

const arange: OpEntry = {
  name: 'arange',
  rule: 'rounded',
  draw: (random) => {
    const unit = random.chance(0.6) ? 1 : 0.25;
    const bound = () => random.integer(-12, 12) * unit;
    const start = bound();
    const step = random.integer(-3, 3) * unit;
    const end = random.chance(0.9) ? start + random.integer(0, 9) * step : bound();
    return {
      operands: [],
      ours: (_, device) => t.arange(start, end, step, { device }),
      torch: () => `torch.arange(${python(start)}, ${python(end)}, ${python(step)})`,
    };
  },
};

const eye: OpEntry = {
  name: 'eye',
  rule: 'exact',
  draw: (random) => {
    const [rows, columns, dtype] = [random.integer(0, 5), random.integer(0, 5), drawDType(random)];
    return {
      operands: [],
      ours: (_, device) => t.eye(rows, columns, { dtype, device }),
      torch: () => `torch.eye(${rows}, ${columns}).to(${dtype})`,
    };
  },
};

const linspace: OpEntry = {
  name: 'linspace',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const [start, end, steps] = [random.integer(-9, 9) / 4, random.integer(-9, 9) / 4, random.integer(0, 9)];
    const dtype = random.pick(['float32', 'float64'] as const);
    return {
      operands: [],
      ours: (_, device) => t.linspace(start, end, steps, { dtype, device }),
      torch: () => `linspace(${start}, ${end}, ${steps}, dtype=${dtype})`,
    };
  },
};

/** Which elements are dropped differs from PyTorch; where nothing is random the values are PyTorch's. */
const dropout: OpEntry = {
  name: 'dropout',
  rule: 'exact',
  eitherZero: true,
  draw: (random) => {
    const [p, training] = [random.pick([0, 0.3, 1]), random.chance(0.7)];
    return {
      operands: [drawTensor(random)],
      ours: ([x]) => t.dropout(tensorOf(x), { p, training }),
      torch: ([x]) => `F.dropout(floating(${x}), ${p}, ${python(training)})`,
      rule: p === 0.3 && training ? 'shape' : 'exact',
    };
  },
};

const nested: OpEntry = {
  name: 'tensor',
  rule: 'exact',
  draw: (random) => {
    const dtype = drawDType(random);
    const value = () => (t.isFloatingPoint(dtype) ? drawNumber(random) : random.integer(-5, 5));
    const values = [
      [value(), value(), value()],
      [value(), value(), value()],
    ];
    if (random.chance(0.05)) values[1]!.pop();
    return {
      operands: [],
      ours: (_, device) => t.tensor(values, { dtype, device }),
      torch: () => `torch.tensor([${values.map((row) => python(row)).join(', ')}], dtype=${dtype})`,
    };
  },
};

/** Reading a tensor's elements: they come out as they went in. */
const fromTypedArray: OpEntry = {
  name: 'fromTypedArray',
  rule: 'exact',
  draw: (random) => ({
    operands: [drawTensor(random)],
    ours: ([x], device) => {
      const { dtype, shape } = tensorOf(x);
      return t.fromTypedArray(tensorOf(x).toTypedArray(), shape, { dtype, device });
    },
    torch: ([x]) => `${x}.detach().clone()`,
  }),
};

/** Random numbers differ from PyTorch's: compared are shape and dtype, and which of these are refused. */
const random = (
  name: string,
  torch: string,
  ours: (shape: Shape, options: TensorOptions) => Tensor,
  dtypes: readonly DType[],
): OpEntry => ({
  name,
  rule: 'shape',
  draw: (source) => {
    const [shape, dtype] = [drawOddShape(source), source.pick(dtypes)];
    return {
      operands: [],
      ours: (_, device: Device) => ours(shape, { dtype, device }),
      torch: () => `${torch.replace('SHAPE', python(shape))}.to(${dtype})`,
    };
  },
});

const floats: readonly DType[] = ['float32', 'float64', 'float16', 'bfloat16'];

export const creationOps: readonly OpEntry[] = [
  filled('zeros'),
  filled('ones'),
  filled('empty'),
  full,
  like('zerosLike', 'zeros_like'),
  like('onesLike', 'ones_like'),
  arange,
  eye,
  linspace,
  dropout,
  nested,
  fromTypedArray,
  random('uniform', 'torch.rand(SHAPE)', t.uniform, floats),
  random('randn', 'torch.randn(SHAPE)', t.randn, floats),
  random('truncatedNormal', 'torch.randn(SHAPE)', t.truncatedNormal, floats),
  random('randint', 'torch.randint(0, 9, SHAPE)', (shape, options) => t.randint(0, 9, shape, options), [
    'int32',
    'int64',
  ]),
];
