import * as t from '../../../src/index.ts';
import type { DType, Shape } from '../../../src/index.ts';
import { tensorOf } from '../ops/operands.ts';
import type { Program, Step } from './program.ts';
import type { RandomSource } from './random-source.ts';
import { type TensorInput, drawTensor } from './tensor-input.ts';

/** A step that can follow others: smooth enough that roundings do not decide which way it goes. */
interface Link {
  readonly ours: Step['ours'];
  readonly torch: Step['torch'];
  readonly shape: Shape;
  readonly operands: readonly number[];
  /** No element is larger in magnitude, except rare ones. */
  readonly bound: number;
  /** Whether the result is in the memory of the first operand. */
  readonly aliases?: true;
  /** Where PyTorch 1.13 keeps the first operand for a backward pass that does not read it. */
  readonly keepsOperand?: boolean;
}

/** A value that a chain has made so far. */
interface Value {
  readonly register: number;
  readonly shape: Shape;
  readonly bound: number;
  /** Whether no other value is in its memory, so that it may be written to. */
  own: boolean;
}

/** With the largest result, Infinity for that of the operand. Not tanh, whose error on the CPU is documented. */
const unary = [
  ['sigmoid', 'torch.sigmoid', 1],
  ['sin', 'torch.sin', 1],
  ['cos', 'torch.cos', 1],
  ['silu', 'silu', Infinity],
  ['neg', 'torch.neg', Infinity],
  ['relu', 'torch.relu', Infinity],
] as const;

const binary = ['add', 'sub', 'mul', 'maximum', 'minimum'] as const;

function unaryLink(random: RandomSource, { register, shape, bound }: Value): Link {
  const [name, torch, largest] = random.pick(unary);
  return {
    operands: [register],
    shape,
    bound: Math.min(bound, largest),
    ours: ([x]) => t[name](tensorOf(x)),
    torch: ([x]) => `${torch}(${x})`,
  };
}

function binaryLink(random: RandomSource, a: Value, b: Value): Link | null {
  const shape = broadcast(a.shape, b.shape);
  if (!shape) return null;
  const name = random.pick(binary);
  return {
    operands: [a.register, b.register],
    shape,
    bound: name === 'mul' ? a.bound * b.bound : a.bound + b.bound,
    ours: ([x, y]) => t[name](tensorOf(x), tensorOf(y)),
    torch: ([x, y]) => `torch.${name}(${x}, ${y})`,
  };
}

function broadcast(a: Shape, b: Shape): Shape | null {
  const rank = Math.max(a.length, b.length);
  const result = Array.from({ length: rank }, (_, i) => {
    const [x, y] = [a[a.length - rank + i] ?? 1, b[b.length - rank + i] ?? 1];
    return x === y || y === 1 ? x : x === 1 ? y : -1;
  });
  return result.includes(-1) ? null : result;
}

function reductionLink(random: RandomSource, { register, shape, bound }: Value): Link {
  const name = random.pick(['sum', 'mean'] as const);
  const dims = random.integer(0, shape.length - 1);
  return {
    operands: [register],
    shape: shape.map((length, i) => (i === dims ? 1 : length)),
    bound: name === 'sum' ? bound * shape[dims]! : bound,
    keepsOperand: name === 'mean',
    ours: ([x]) => t[name](tensorOf(x), { dims, keepDims: true }),
    torch: ([x]) => `torch.${name}(${x}, dim=${dims}, keepdim=True)`,
  };
}

function viewLink(random: RandomSource, { register, shape, bound }: Value): Link {
  const size = shape.reduce((product, length) => product * length, 1);
  const rows = shape[0]!;
  const start = random.integer(0, Math.max(0, rows - 1));
  const view = { operands: [register], bound, aliases: true } as const;
  return random.pick<Link>([
    {
      ...view,
      shape: [...shape.slice(0, -2), ...shape.slice(-2).reverse()],
      ours: ([x]) => (shape.length > 1 ? t.transpose(tensorOf(x)) : t.reshape(tensorOf(x), shape)),
      torch: ([x]) => (shape.length > 1 ? `${x}.transpose(-2, -1)` : `${x}.reshape(${shape[0]})`),
    },
    {
      ...view,
      shape: [size],
      ours: ([x]) => t.reshape(tensorOf(x), [size]),
      torch: ([x]) => `${x}.reshape(${size})`,
    },
    {
      ...view,
      shape: [Math.ceil((rows - start) / 2), ...shape.slice(1)],
      ours: ([x]) => t.slice(tensorOf(x), 0, start, rows, 2),
      torch: ([x]) => `${x}[${start}:${rows}:2]`,
    },
    {
      ...view,
      shape: [2, ...shape],
      ours: ([x]) => t.expand(tensorOf(x), [2, ...shape]),
      torch: ([x]) => `${x}.expand(2, ${shape.join(', ')})`,
    },
  ]);
}

/** For large numbers softmax is chaotic: e^x turns their roundings into factors. */
const largestOfSoftmax = 16;

function rowLink(random: RandomSource, { register, shape, bound }: Value): Link {
  const name = bound > largestOfSoftmax ? 'logSoftmax' : random.pick(['softmax', 'logSoftmax'] as const);
  return {
    operands: [register],
    shape,
    bound: name === 'softmax' ? 1 : 2 * bound + shape.at(-1)!,
    ours: ([x]) => t[name](tensorOf(x)),
    torch: ([x]) => `${name === 'softmax' ? 'torch.softmax' : 'log_softmax'}(${x}, -1)`,
  };
}

function productLink(_: RandomSource, { register, shape, bound }: Value): Link | null {
  if (shape.length < 2) return null;
  return {
    operands: [register, register],
    shape: [...shape.slice(0, -1), shape.at(-2)!],
    bound: bound * bound * shape.at(-1)!,
    ours: ([x, y]) => t.matmul(tensorOf(x), t.transpose(tensorOf(y))),
    torch: ([x, y]) => `torch.matmul(${x}, ${y}.transpose(-2, -1))`,
  };
}

function joinLink(_: RandomSource, a: Value, b: Value): Link | null {
  if (a.shape.slice(1).join() !== b.shape.slice(1).join() || a.shape.length !== b.shape.length) return null;
  return {
    operands: [a.register, b.register],
    shape: [a.shape[0]! + b.shape[0]!, ...a.shape.slice(1)],
    bound: Math.max(a.bound, b.bound),
    ours: ([x, y]) => t.concat([tensorOf(x), tensorOf(y)], 0),
    torch: ([x, y]) => `torch.cat([${x}, ${y}], 0)`,
  };
}

/** A write into a value that an op has made, also where a backward pass needs what it was: then both refuse. */
function writingLink(random: RandomSource, source: Value, target: Value): Link | null {
  const fits = source.register !== target.register && source.shape.join() === target.shape.join();
  if (!target.own || !fits) return null;
  const [name, torch] = random.pick([
    ['addInPlace', 'add_'],
    ['copyInPlace', 'copy_'],
  ] as const);
  return {
    operands: [target.register, source.register],
    shape: target.shape,
    bound: target.bound + source.bound,
    aliases: true,
    ours: ([x, y]) => {
      t[name](tensorOf(x), tensorOf(y));
      return tensorOf(x);
    },
    torch: ([x, y]) => `${x}.${torch}(${y})`,
  };
}

const links: readonly ((random: RandomSource, a: Value, b: Value) => Link | null)[] = [
  unaryLink,
  unaryLink,
  binaryLink,
  binaryLink,
  binaryLink,
  reductionLink,
  viewLink,
  viewLink,
  rowLink,
  productLink,
  joinLink,
  writingLink,
  writingLink,
];

const maxElements = 400;

/** Three to eight steps, each on values made before, so that many are used more than once; the last one on the last. */
export function drawChain(random: RandomSource, seed: number): Program {
  const dtype = random.weighted<DType>([
    [60, 'float32'],
    [20, 'float64'],
    [20, 'bfloat16'],
  ]);
  const shape = Array.from({ length: random.integer(1, 3) }, () => random.integer(1, 4));
  const inputs: TensorInput[] = Array.from({ length: random.integer(1, 3) }, () =>
    drawTensor(random, { dtype, shape, values: 'ordinary' }),
  );
  const values: Value[] = inputs.map(({ shape }, register) => ({ register, shape, bound: 8, own: false }));
  const steps: Step[] = [];
  const count = random.integer(3, 8);
  while (steps.length < count) {
    // The newest value takes part in every step, so that no step is wasted.
    const [a, b] = [values.at(-1)!, random.pick(values)];
    const link = random.pick(links)(random, a, b);
    if (!link || link.shape.length > 4 || link.shape.reduce((x, y) => x * y, 1) > maxElements) continue;
    const operands = link.operands.map((register) => ({ register }));
    steps.push({ operands, ours: link.ours, torch: link.torch });
    if (link.aliases || link.keepsOperand) values[link.operands[0]!]!.own = false;
    values.push({ register: values.length, shape: link.shape, bound: link.bound, own: !link.aliases });
  }
  return {
    name: 'chain',
    seed,
    inputs,
    steps,
    rule: 'accumulated',
    terms: steps.length * Math.max(...values.map((value) => value.shape.reduce((x, y) => Math.max(x, y), 1))),
    exactAddends: false,
    aliasing: false,
    mutates: false,
    eitherZero: true,
    keepsFloat32: false,
  };
}
