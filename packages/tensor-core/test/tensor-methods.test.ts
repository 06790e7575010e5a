import { expect, expectTypeOf, it } from 'vitest';
import * as t from '../src/index.ts';
import { opMethods } from '../src/tensor-methods.ts';

const x = () => t.tensor([[0.5, 2], [3, 4]]); // prettier-ignore

/** What each op is called with after its first operand; nothing for those that need no more. */
const more: Readonly<Record<string, readonly unknown[]>> = {
  ...Object.fromEntries(
    ['add', 'sub', 'mul', 'div', 'pow', 'maximum', 'minimum', 'matmul'].map((name) => [name, [x()]]),
  ),
  ...Object.fromEntries(
    ['equal', 'greater', 'greaterEqual', 'less', 'lessEqual'].map((name) => [name, [x()]]),
  ),
  clamp: [{ min: 1, max: 3 }],
  sum: [{ dims: 0 }],
  cumsum: [0],
  reshape: [[4]],
  view: [[4]],
  permute: [[1, 0]],
  expand: [[2, 2]],
  squeeze: [0],
  unsqueeze: [0],
  select: [0, 1],
  slice: [0, 1, 2],
};

it.each(Object.entries(opMethods))('x.%s(...) is the op of that name', (name, op) => {
  expect((t as unknown as Record<string, unknown>)[name]).toBe(op);
  const rest = more[name] ?? [];
  const operand = () => (name === 'squeeze' ? t.unsqueeze(x(), 0) : x());
  const methods = operand() as unknown as Record<string, (...rest: readonly unknown[]) => t.Tensor>;
  const byMethod = methods[name]!(...rest);
  const byOp = (op as (...all: readonly unknown[]) => t.Tensor)(operand(), ...rest);
  expect([byMethod.shape, byMethod.dtype, byMethod.toArray()]).toEqual([
    byOp.shape,
    byOp.dtype,
    byOp.toArray(),
  ]);
});

it('methods chain, record gradients and refuse what their ops refuse', () => {
  const leaf = x().requiresGrad_();
  leaf.mul(leaf).add(1).sum().backward();
  expect(leaf.grad!.toArray()).toEqual([[1, 4], [6, 8]]); // prettier-ignore
  expect(() => (leaf as unknown as { mul(): void }).mul()).toThrow(
    'mul: takes tensors and numbers, not undefined',
  );
  const disposed = x();
  disposed.dispose();
  expect(() => disposed.exp()).toThrow(t.DisposedError);
});

it('methods have the types of their ops', () => {
  expectTypeOf(x().mul(2)).toEqualTypeOf<t.Tensor>();
  expectTypeOf(x().softmax).parameter(0).toEqualTypeOf<Parameters<typeof t.softmax>[1]>();
  // @ts-expect-error: an operand is a tensor or a number.
  expect(() => x().add('1')).toThrow(t.RooflineError);
});

it('methods are not enumerable: a tensor in a record is compared and copied as before', () => {
  const names: string[] = [];
  for (const name in x()) names.push(name);
  expect(names.filter((name) => Object.hasOwn(opMethods, name))).toEqual([]);
});
