import * as t from '../../../src/index.ts';
import type { MatmulOptions, Shape } from '../../../src/index.ts';
import { type OpEntry, python } from '../programs/program.ts';
import type { RandomSource } from '../programs/random-source.ts';
import { drawDType, drawLength, drawMostlyFloat, drawShape, drawTensor } from '../programs/tensor-input.ts';
import { drawBroadcast, tensorOf } from './operands.ts';

/** The length that a product sums over: mostly short, occasionally longer than a block of any kernel. */
function drawInner(random: RandomSource): number {
  return random.chance(0.06) ? random.integer(60, 300) : drawLength(random);
}

function drawFactors(random: RandomSource): [Shape, Shape] {
  const [m, k, n] = [drawLength(random), drawInner(random), drawLength(random)];
  const inner = random.chance(0.03) ? k + 1 : k;
  const batch = random.chance(0.5) ? [] : drawShape(random, 1, 2);
  const batches = random.chance(0.5)
    ? [batch, drawBroadcast(random, batch)]
    : [drawBroadcast(random, batch), batch];
  return [
    random.chance(0.1) ? [k] : [...batches[0]!, m, k],
    random.chance(0.1) ? [inner] : [...batches[1]!, inner, n],
  ];
}

const matmul: OpEntry = {
  name: 'matmul',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const [a, b] = drawFactors(random);
    const dtype = random.chance(0.9) ? drawMostlyFloat(random) : drawDType(random);
    // PyTorch has no product of float16 on the CPU, and float32 in its place would hide a mismatch.
    const other =
      dtype === 'float16' || random.chance(0.95) ? dtype : random.pick(['float64', 'int64'] as const);
    const values = random.chance(0.85) ? 'ordinary' : 'any';
    return {
      operands: [
        drawTensor(random, { dtype, shape: a, values }),
        drawTensor(random, { dtype: other, shape: b, values }),
      ],
      ours: ([a, b]) => t.matmul(tensorOf(a), tensorOf(b)),
      torch: ([a, b]) => `product(${a}, ${b})`,
      terms: Math.max(1, a.at(-1) ?? 1),
    };
  },
};

/** `scale` and `dtype`, which PyTorch has no names for. */
const matmulOptions: OpEntry = {
  ...matmul,
  keepsFloat32: true,
  draw: (random) => {
    const dtype = random.pick(['float32', 'float64', 'float16', 'bfloat16'] as const);
    const unrounded = dtype !== 'float64' && random.chance(0.5);
    const options: MatmulOptions = { scale: random.pick([0.5, 0.1, 3, -1.7]) };
    if (unrounded) options.dtype = 'float32';
    const [m, k, n] = [drawLength(random), drawInner(random), drawLength(random)];
    const result = unrounded ? 'float32' : dtype;
    return {
      operands: [
        drawTensor(random, { dtype, shape: [m, k], values: 'ordinary' }),
        drawTensor(random, { dtype, shape: [k, n], values: 'ordinary' }),
      ],
      ours: ([a, b]) => t.matmul(tensorOf(a), tensorOf(b), options),
      torch: ([a, b]) => `(torch.matmul(wide(${a}), wide(${b})) * ${python(options.scale)}).to(${result})`,
      terms: Math.max(1, k),
    };
  },
};

const linear: OpEntry = {
  name: 'linear',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const [inner, outer] = [drawInner(random), drawLength(random)];
    const lead = random.chance(0.1) ? [] : drawShape(random, 1, 3);
    const dtype = drawMostlyFloat(random);
    return {
      operands: [
        drawTensor(random, { dtype, shape: [...lead, inner], values: 'ordinary' }),
        drawTensor(random, { dtype, shape: [outer, inner], values: 'ordinary' }),
      ],
      ours: ([x, weight]) => t.linear(tensorOf(x), tensorOf(weight)),
      torch: ([x, weight]) => `F.linear(${x}, ${weight})`,
      terms: Math.max(1, inner, ...lead),
    };
  },
};

const equations = [
  'ij,jk->ik',
  'ij,kj->ik',
  'bij,bjk',
  'bhqd,bhkd->bhqk',
  'i,j->ij',
  'ij->ji',
  'ij->',
  'bi,ij,bj->b',
  '...ij,jk->...ik',
];

/** Letters have one length each in an equation; an ellipsis stands for one dimension. */
const einsum: OpEntry = {
  name: 'einsum',
  rule: 'accumulated',
  eitherZero: true,
  draw: (random) => {
    const equation = random.pick(equations);
    const lengths = new Map<string, number>();
    const lengthOf = (letter: string) => {
      if (!lengths.has(letter)) lengths.set(letter, drawLength(random));
      return lengths.get(letter)!;
    };
    const dtype = random.weighted([
      [60, 'float32'],
      [25, 'float64'],
      [15, 'bfloat16'],
    ] as const);
    const operands = equation
      .split('->')[0]!
      .split(',')
      .map((term) => {
        const shape = [...term.replace('...', '.')].map(lengthOf);
        return drawTensor(random, { dtype, shape, values: 'ordinary' });
      });
    return {
      operands,
      ours: (operands) => t.einsum(equation, ...operands.map(tensorOf)),
      torch: (names) => `torch.einsum('${equation}', ${names.join(', ')})`,
      terms: Math.max(1, ...lengths.values()) ** 2,
    };
  },
};

export const matrixOps: readonly OpEntry[] = [matmul, matmulOptions, linear, einsum];
