import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { DType, Operand } from '../../src/index.ts';
import { resultType } from '../../src/base/dtype.ts';
import { askTorch, torchPython } from './torch-results.ts';

/** An operand: a tensor of a dtype with or without dimensions, or a number. */
interface OperandCase {
  readonly dtype: DType | 'integer' | 'fraction';
  readonly values: number | readonly number[];
}

// Values that differ after rounding to a narrower dtype: 0.1, and 2^15 + 1 among integers.
const tensorCases: readonly OperandCase[] = t.dtypes.flatMap((dtype) => {
  const value = dtype === 'bool' ? 1 : t.isFloatingPoint(dtype) ? 0.1 : 2 ** 15 + 1;
  return [
    { dtype, values: value },
    { dtype, values: [value, 0] },
  ];
});
const numberCases: readonly OperandCase[] = [
  { dtype: 'integer', values: 3 },
  { dtype: 'integer', values: -1 },
  { dtype: 'fraction', values: -0.5 },
  { dtype: 'fraction', values: 0.1 },
];

const pairs = [...tensorCases, ...numberCases].flatMap((a) =>
  [...tensorCases, ...numberCases].map((b) => [a, b] as const),
);
const isTensor = ({ dtype }: OperandCase) => dtype !== 'integer' && dtype !== 'fraction';
const cases = pairs.filter((pair) => pair.some(isTensor));

const ops = {
  add: t.add,
  mul: t.mul,
  div: t.div,
  maximum: t.maximum,
  minimum: t.minimum,
  equal: t.equal,
  less: t.less,
  greaterEqual: t.greaterEqual,
  where: (a: Operand, b: Operand) => t.where(t.tensor([1, 0], { dtype: 'bool' }), a, b),
};

/** Those that refuse some operands, or round numbers differently: only their dtypes are compared. */
const particular = { sub: t.sub, pow: t.pow };

// torch.maximum takes only tensors: a number becomes a tensor without dimensions there, which has no width.
const script = `
import json, sys, torch
def operand(case):
    if case['dtype'] == 'integer': return int(case['values'])
    if case['dtype'] == 'fraction': return float(case['values'])
    return torch.tensor(case['values'], dtype=torch.float64).to(getattr(torch, case['dtype']))
def extremum(op):
    def apply(a, b):
        dtype = torch.result_type(a, b)
        a, b = (x.to(dtype) if torch.is_tensor(x) else torch.tensor(x, dtype=dtype) for x in (a, b))
        return op(a, b)
    return apply
ops = {'add': torch.add, 'mul': torch.mul, 'div': torch.div, 'maximum': extremum(torch.maximum),
       'minimum': extremum(torch.minimum), 'sub': torch.sub, 'pow': torch.pow,
       'equal': lambda a, b: a == b, 'less': lambda a, b: a < b,
       'greaterEqual': lambda a, b: a >= b,
       'where': lambda a, b: torch.where(torch.tensor([True, False]), a, b)}
answers = []
for pair in json.load(sys.stdin):
    a, b = map(operand, pair)
    answer = {'resultType': str(torch.result_type(a, b))[6:]}
    for name, op in ops.items():
        try:
            y = op(a, b)
            answer[name] = [str(y.dtype)[6:], [str(v) for v in y.double().flatten().tolist()]]
        except (TypeError, RuntimeError) as error:
            answer[name] = str(error)
    answers.append(answer)
print(json.dumps(answers))
`;

type Answer = Readonly<
  Record<keyof typeof ops | keyof typeof particular, readonly [DType, readonly string[]] | string>
> & {
  readonly resultType: DType;
};

function operandOf({ dtype, values }: OperandCase): Operand {
  if (dtype === 'integer' || dtype === 'fraction') return values as number;
  return t.cast(t.tensor(values, { dtype: 'float64' }), dtype);
}

const shapeOf = ({ values }: OperandCase) => (typeof values === 'number' ? [] : [values.length]);

describe.skipIf(!torchPython)('promotion, compared to PyTorch', () => {
  const answers = torchPython ? (askTorch(script, cases) as Answer[]) : [];

  it('gives two tensors the dtype of torch.result_type', () => {
    let compared = 0;
    cases.forEach(([a, b], i) => {
      if (!isTensor(a) || !isTensor(b)) return;
      const [first, second] = [a, b].map((x) => ({ dtype: x.dtype as DType, shape: shapeOf(x) }));
      expect(`${a.dtype} ${b.dtype} ${resultType(first!, second!)}`).toBe(
        `${a.dtype} ${b.dtype} ${answers[i]!.resultType}`,
      );
      compared++;
    });
    expect(compared).toBe(14 ** 2);
  });

  it.each(Object.keys(ops) as (keyof typeof ops)[])('%s has its dtype and values', (name) => {
    const wrong = cases.flatMap(([a, b], i) => {
      const expected = answers[i]![name];
      if (typeof expected === 'string') return [`torch: ${expected}`];
      const [dtype, values] = t.scope(() => {
        const y = ops[name](operandOf(a), operandOf(b));
        return [y.dtype, y.toFlatArray()] as const;
      });
      // With numbers a 16-bit result is computed in float32; torch rounds some of them to 16 bits first.
      const exact = isTensor(a) && isTensor(b);
      const ulp = exact ? 0 : dtype === 'bfloat16' ? 2 ** -7 : dtype === 'float16' ? 2 ** -10 : 0;
      const same =
        dtype === expected[0] &&
        values.every((value, k) => {
          const wanted = Number(expected[1][k]!.replace('inf', 'Infinity'));
          return Object.is(value, wanted) || Math.abs(value - wanted) <= ulp * Math.abs(wanted);
        });
      return same ? [] : [`${JSON.stringify([a, b])}: ${dtype} ${values.join()}, torch ${expected.join()}`];
    });
    expect(wrong).toEqual([]);
  });

  it.each(Object.keys(particular) as (keyof typeof particular)[])('%s has its dtype, or refuses', (name) => {
    const dtypeOf = (a: OperandCase, b: OperandCase) => {
      try {
        return t.scope(() => particular[name](operandOf(a), operandOf(b)).dtype);
      } catch (error) {
        expect(error).toBeInstanceOf(t.RooflineError);
        return 'refused';
      }
    };
    const wrong = cases.flatMap(([a, b], i) => {
      const answer = answers[i]![name];
      const [own, expected] = [dtypeOf(a, b), typeof answer === 'string' ? 'refused' : answer[0]];
      return own === expected ? [] : [`${JSON.stringify([a, b])}: ${own}, torch ${expected}`];
    });
    expect(wrong).toEqual([]);
  });
});

describe('promotion', () => {
  it.each<[DType, readonly number[], DType, readonly number[], DType]>([
    ['bfloat16', [2], 'float32', [], 'bfloat16'],
    ['float32', [], 'bfloat16', [2], 'bfloat16'],
    ['bfloat16', [], 'float32', [], 'float32'],
    ['bfloat16', [2], 'float32', [1], 'float32'],
    ['float16', [2], 'bfloat16', [2], 'float32'],
    ['float16', [2], 'bfloat16', [], 'float16'],
    ['float32', [2], 'float64', [], 'float32'],
    ['int32', [2], 'int64', [], 'int32'],
    ['int64', [2], 'float16', [], 'float16'],
    ['bool', [2], 'int32', [], 'int32'],
    ['int32', [], 'bool', [2], 'int32'],
    ['int32', [2], 'bool', [], 'int32'],
  ])('%s %j with %s %j is %s', (a, shapeA, b, shapeB, expected) => {
    expect(resultType({ dtype: a, shape: shapeA }, { dtype: b, shape: shapeB })).toBe(expected);
  });

  it('rounds a tensor without dimensions, or of integers, to low precision first, but no number', () => {
    t.scope(() => {
      // 1 + 2^-8 is halfway between two bfloat16 and is rounded to 1 before the product.
      const x = t.tensor([2 - 2 ** -7], { dtype: 'bfloat16' });
      for (const [other, product] of [
        [t.tensor(1 + 2 ** -8), 2 - 2 ** -7],
        [1 + 2 ** -8, 2],
      ] as const) {
        const y = t.mul(x, other);
        expect([y.dtype, y.item()]).toEqual(['bfloat16', product]);
      }
      const one = t.tensor([1], { dtype: 'float16' });
      const odd = t.tensor([2049], { dtype: 'int32' });
      expect(t.sub(odd, one).item()).toBe(2047);
      const sum = t.copy(one);
      t.addInPlace(sum, odd);
      expect([t.add(one, odd).item(), sum.item()]).toEqual([2048, 2048]);
      expect(t.lessEqual(odd, t.tensor([2048], { dtype: 'float16' })).item()).toBe(1);
      expect(
        t.mul(t.tensor([0], { dtype: 'float16' }), t.tensor([2 ** 40], { dtype: 'int64' })).item(),
      ).toBeNaN();
    });
  });

  it('compares in the dtype of the result, to which the operand of lower priority is rounded', () => {
    t.scope(() => {
      const x = t.tensor([0.1], { dtype: 'bfloat16' });
      for (const other of [0.1, t.tensor(0.1), t.tensor(0.1, { dtype: 'float64' })]) {
        expect(t.equal(x, other).toFlatArray()).toEqual([1]);
        expect(t.less(x, other).toFlatArray()).toEqual([0]);
        expect(t.greater(other, x).toFlatArray()).toEqual([0]);
      }
      const leaf = x.detach().requiresGrad_();
      t.maximum(leaf, 0.1).backward(t.tensor([1], { dtype: 'bfloat16' }));
      expect(leaf.grad!.toFlatArray()).toEqual([0.5]);
    });
  });

  it('gives each operand a gradient of its own dtype', () => {
    t.scope(() => {
      const a = t.tensor([1, 2], { dtype: 'bfloat16', requiresGrad: true });
      const b = t.tensor(3, { dtype: 'float64', requiresGrad: true });
      t.mul(a, b).backward(t.tensor([1, 1], { dtype: 'bfloat16' }));
      expect([a.grad!.dtype, a.grad!.toFlatArray()]).toEqual(['bfloat16', [3, 3]]);
      expect([b.grad!.dtype, b.grad!.shape, b.grad!.toFlatArray()]).toEqual(['float64', [], [3]]);
    });
  });

  it('joins in the promoted dtype', () => {
    t.scope(() => {
      const low = t.tensor([1], { dtype: 'float16' });
      expect(t.concat([low, t.tensor([2], { dtype: 'bfloat16' })]).dtype).toBe('float32');
      expect(t.concat([t.tensor([1], { dtype: 'bool' }), t.tensor([2], { dtype: 'int32' })]).dtype).toBe(
        'int32',
      );
      const y = t.stack([t.tensor(1, { dtype: 'int64' }), t.tensor(0.5)]);
      expect([y.dtype, y.toFlatArray()]).toEqual(['float32', [1, 0.5]]);
    });
  });
});
