import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { Operand as OursOperand } from '../../../src/index.ts';
import { decode, encode } from '../programs/host-data.ts';
import type { OpEntry, Rule } from '../programs/program.ts';
import { type TensorChoices, type TensorInput, drawTensor } from '../programs/tensor-input.ts';
import { drawBroadcast, drawNumber, drawNumberBeside, drawPair, ruleOfPair, tensorOf } from './operands.ts';

interface UnaryChoices extends TensorChoices {
  readonly rule?: Rule;
  readonly eitherZero?: boolean;
  readonly exactAddends?: boolean;
}

const unary = (
  name: string,
  ours: (x: Tensor) => Tensor,
  torch: string,
  { rule = 'rounded', eitherZero, exactAddends, ...choices }: UnaryChoices = {},
): OpEntry => ({
  name,
  rule,
  eitherZero,
  draw: (random) => ({
    operands: [drawTensor(random, choices)],
    ours: ([x]) => ours(tensorOf(x)),
    torch: ([x]) => `${torch}(${x})`,
    exactAddends,
  }),
});

const binary = (
  name: string,
  ours: (a: OursOperand, b: OursOperand) => Tensor,
  torch: string,
  rule: Rule = 'exact',
  eitherZero = false,
): OpEntry => ({
  name,
  rule,
  eitherZero,
  draw: (random) => {
    const operands = drawPair(random);
    return {
      operands,
      ours: ([a, b]) => ours(a!, b!),
      torch: ([a, b]) => `${torch}(${a}, ${b})`,
      rule: ruleOfPair(rule, operands),
    };
  },
});

/**
 * PyTorch's gradient subtracts 1 from the exponent. So with floating point there are no integers at the ends of their range,
 * and no fractions so small that the difference rounds to -1.
 */
const pow: OpEntry = {
  ...binary('pow', t.pow, 'torch.pow', 'rounded'),
  draw: (random) => {
    const [base, exponent] = drawPair(random);
    const mixed = [base, exponent].some((x) => typeof x !== 'number' && t.isFloatingPoint(x!.dtype));
    const tame = (x: TensorInput | number) =>
      mixed && typeof x !== 'number' && !t.isFloatingPoint(x.dtype)
        ? drawTensor(random, { dtype: x.dtype, shape: x.shape, values: 'whole' })
        : x;
    const operands = [tame(base!), withoutTiny(tame(exponent!))];
    return {
      operands,
      ours: ([a, b]) => t.pow(a!, b!),
      torch: ([a, b]) => `torch.pow(${a}, ${b})`,
      rule: ruleOfPair('rounded', operands),
    };
  },
};

function withoutTiny(x: TensorInput | number): TensorInput | number {
  const enlarge = (value: number) => (value !== 0 && Math.abs(value) < 2 ** -8 ? 0.5 : value);
  // PyTorch rounds it to float32 in some kernels and not in others.
  if (typeof x === 'number') return Math.fround(enlarge(x));
  if (!t.isFloatingPoint(x.dtype)) return x;
  return { ...x, data: encode(x.dtype, Array.from(decode(x.dtype, x.data), enlarge)) };
}

/** PyTorch's maximum and minimum take only tensors: a number next to one becomes one without dimensions. */
const extremum = (name: 'maximum' | 'minimum'): OpEntry => ({
  name,
  rule: 'exact',
  eitherZero: true,
  draw: (random) => ({
    operands: drawPair(random),
    ours: ([a, b]) => t[name](a!, b!),
    torch: ([a, b]) => `torch.${name}(${beside(a!, b!)}, ${beside(b!, a!)})`,
  }),
});

function beside(name: string, other: string): string {
  return isRegister(name) || !isRegister(other) ? name : `number(${name}, ${other})`;
}

function isRegister(name: string): boolean {
  return name.startsWith('r');
}

/** A comparison, by Python's operator, which takes a number on either side. */
const comparison = (
  name: string,
  ours: (a: OursOperand, b: OursOperand) => Tensor,
  operator: string,
): OpEntry => ({
  name,
  rule: 'exact',
  draw: (random) => ({
    // Python makes no tensor of two numbers, and we refuse them.
    operands: random.chance(0.01) ? [drawNumber(random), drawNumber(random)] : drawPair(random),
    ours: ([a, b]) => ours(a!, b!),
    torch: ([a, b]) => `(${a} ${operator} ${b})`,
  }),
});

const where: OpEntry = {
  name: 'where',
  rule: 'exact',
  draw: (random) => {
    const [a, b] = drawPair(random);
    const tensor = [a, b].find((side) => typeof side === 'object');
    const shape = typeof tensor === 'object' ? tensor.shape : [];
    const dtype = random.chance(0.95) ? 'bool' : undefined;
    return {
      operands: [
        drawTensor(random, { dtype, shape: drawBroadcast(random, shape), requiresGrad: false }),
        a!,
        b!,
      ],
      ours: ([condition, a, b]) => t.where(tensorOf(condition), a!, b!),
      torch: ([condition, a, b]) => `torch.where(${condition}, ${a}, ${b})`,
    };
  },
};

/** One bound or both: numbers, or tensors that broadcast. */
const clamp: OpEntry = {
  name: 'clamp',
  rule: 'exact',
  eitherZero: true,
  draw: (random) => {
    const x = drawTensor(random);
    const tensors = random.chance(0.3);
    const bound = () =>
      tensors
        ? drawTensor(random, {
            dtype: random.chance(0.6) ? x.dtype : undefined,
            shape: drawBroadcast(random, x.shape),
          })
        : drawNumberBeside(random, x);
    const which = random.pick(['min', 'max', 'both', 'both'] as const);
    const bounds = which === 'both' ? [bound(), bound()] : [bound()];
    return {
      operands: [x, ...bounds],
      ours: ([x, a, b]) =>
        t.clamp(
          tensorOf(x),
          which === 'both' ? { min: a, max: b } : which === 'min' ? { min: a } : { max: a },
        ),
      // Broadcast first: the backward pass of PyTorch's own fails where the bounds' shapes differ.
      torch: ([x, a, b]) =>
        tensors
          ? `clamp(${which === 'max' ? `${x}, None, ${a}` : `${x}, ${a}, ${b ?? 'None'}`})`
          : `torch.clamp(${x}, ${which === 'max' ? `max=${a}` : `min=${a}`}${b ? `, max=${b}` : ''})`,
      rule: ruleOfPair('exact', [x, ...bounds]),
    };
  },
};

export const elementwiseOps: readonly OpEntry[] = [
  binary('add', t.add, 'torch.add'),
  binary('sub', t.sub, 'torch.sub'),
  binary('mul', t.mul, 'torch.mul'),
  binary('div', t.div, 'torch.div'),
  pow,
  extremum('maximum'),
  extremum('minimum'),
  comparison('equal', t.equal, '=='),
  comparison('notEqual', t.notEqual, '!='),
  comparison('less', t.less, '<'),
  comparison('lessEqual', t.lessEqual, '<='),
  comparison('greater', t.greater, '>'),
  comparison('greaterEqual', t.greaterEqual, '>='),
  where,
  clamp,
  unary('abs', t.abs, 'torch.abs', { rule: 'exact' }),
  unary('sign', t.sign, 'torch.sign', { rule: 'exact', eitherZero: true }),
  unary('neg', t.neg, 'torch.neg', { rule: 'exact' }),
  unary('logicalNot', t.logicalNot, 'torch.logical_not', { rule: 'exact' }),
  unary('relu', t.relu, 'torch.relu', { rule: 'exact', eitherZero: true }),
  unary('exp', t.exp, 'torch.exp'),
  unary('log', t.log, 'torch.log'),
  unary('sqrt', t.sqrt, 'torch.sqrt'),
  unary('rsqrt', t.rsqrt, 'torch.rsqrt'),
  unary('sin', t.sin, 'torch.sin'),
  unary('cos', t.cos, 'torch.cos'),
  unary('tanh', t.tanh, 'torch.tanh'),
  unary('sigmoid', t.sigmoid, 'torch.sigmoid'),
  unary('silu', t.silu, 'silu'),
  unary('gelu', t.gelu, 'gelu', { rule: 'accumulated', exactAddends: true }),
  unary('gelu', (x) => t.gelu(x, { approximate: 'tanh' }), 'gelu_tanh', {
    ...{ rule: 'accumulated', exactAddends: true },
  }),
];
