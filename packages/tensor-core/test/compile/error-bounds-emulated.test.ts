import { describe, expect, it } from 'vitest';
import { uniformStream } from '../../../../tooling/uniform-stream.ts';
import * as t from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { unitRoundoff } from '../op-cases/support/samples.ts';
import * as chain from './error-bounds.ts';

const seed = Number(process.env['PROGRAM_SEED'] ?? 17);
const cases = Number(process.env['PROGRAM_CASES'] ?? 24);
const [rows, columns] = [8, 16];
const weightCount = 3;

/** Steps on [rows, columns] matrices; the first registers are an argument and weights [columns, columns]. */
function drawChain(caseSeed: number, low: 'float16' | 'bfloat16'): chain.Step[] {
  const random = uniformStream(caseSeed);
  const below = (count: number) => Math.floor(random() * count);
  const steps: chain.Step[] = [];
  // Registers that hold matrices of the argument's shape.
  const made = [0];
  const push = (...added: chain.Step[]) => {
    steps.push(...added);
    return weightCount + steps.length;
  };
  const any = () => made[Math.max(0, made.length - 1 - below(3))]!;
  const weight = () => 1 + below(weightCount);
  const project = () => push(chain.product([any(), weight()]));
  const makers: (() => number)[] = [
    () => push(chain.sum([any(), project()])),
    () => push(chain.sum([project(), project()])),
    () => push(chain.sum([push(chain.elementProduct([project(), project()])), project()])),
    () => push(chain.difference([any(), project()])),
    () =>
      push(
        chain.sum([
          any(),
          push(chain.product([push(chain.product([any(), any()])), push(chain.turned(any()))])),
        ]),
      ),
    () => push(chain.elementProduct([any(), any()])),
    () => push(chain.tanh(any())),
    () => push(chain.silu(any())),
    () => push(chain.relu(push(chain.sum([any(), any()])))),
    () => push(chain.sigmoid(push(chain.scaled(any(), 0.37)))),
    () => push(chain.widened(any(), low)),
    () => push(chain.scaled(push(chain.difference([any(), any()])), -1.3)),
  ];
  for (let i = 3 + below(6); i > 0; i--) made.push(makers[below(makers.length)]!());
  return steps;
}

/** All values that a chain makes. */
function run(steps: readonly chain.Step[], inputs: readonly Tensor[]): Tensor[] {
  const registers = [...inputs];
  for (const step of steps) registers.push(step.run(registers));
  return registers;
}

describe.skipIf(hostCompilerVersion() === null)('chains in low precision on an emulated GPU', () => {
  const device = openEmulatedDevice();

  it.each(['bfloat16', 'float16'] as const)(
    `of %s, compiled, are within the bounds of eager rounding, and alike but for sums of products (seed ${seed}, ${cases} cases)`,
    (low) => {
      const failures: string[] = [];
      let [accumulated, different, worst] = [0, 0, 0];
      for (let caseSeed = seed; caseSeed < seed + cases; caseSeed++) {
        t.scope(() => {
          const random = uniformStream(1000 + caseSeed);
          const normal = () => random() + random() + random() - 1.5;
          const operands = [
            chain.given(rows, columns, low, normal),
            ...Array.from({ length: weightCount }, () =>
              chain.given(columns, columns, low, () => normal() / 2),
            ),
          ];
          const steps = drawChain(caseSeed, low);
          const bounded = [...operands];
          for (const step of steps) bounded.push(step.bound(bounded));
          const result = bounded.at(-1)!;
          const [x, ...weights] = operands.map((operand) => chain.tensorOf(operand, device));
          const eager = run(steps, [x!, ...weights])
            .at(-1)!
            .toFlatArray();
          const compiled = t.compile((given: Tensor) => run(steps, [given, ...weights]).at(-1)!);
          const errorOfEager = chain.worstError(eager, result);
          if (!(errorOfEager <= 1)) failures.push(`seed ${caseSeed}: eager is ${errorOfEager} bounds off`);
          worst = Math.max(worst, errorOfEager);
          let isAlike = true;
          for (let call = 0; call < 3; call++) {
            const values = compiled(x!).toFlatArray();
            const error = chain.worstError(values, result);
            if (!(error <= 1)) failures.push(`seed ${caseSeed}: call ${call} is ${error} bounds off`);
            isAlike &&= values.every((value, i) => Object.is(value, eager[i]));
          }
          const [program] = compiled.explain();
          const joined = program!.accumulatedProducts + program!.mergedProducts;
          accumulated += program!.accumulatedProducts;
          if (!isAlike) different++;
          if (!isAlike && joined === 0)
            failures.push(`seed ${caseSeed}: other bits without a sum of products`);
          compiled.dispose();
        });
      }
      expect(failures).toEqual([]);
      // There is something to bound: sums that are rounded once, with other bits, and errors close to the bounds.
      expect(accumulated).toBeGreaterThan(cases / 4);
      expect(different).toBeGreaterThan(0);
      expect(worst).toBeGreaterThan(1 / 8);
    },
  );

  it.each(['bfloat16', 'float16'] as const)('round a sum of a product once, in %s', (low) => {
    t.scope(() => {
      const random = uniformStream(3);
      const normal = () => random() - 0.5;
      const [x, w, c] = [
        chain.given(64, 32, low, normal),
        chain.given(48, 32, low, normal),
        chain.given(64, 48, low, normal),
      ];
      const [tensorX, tensorW, tensorC] = [x, w, c].map((each) => chain.tensorOf(each, device));
      const compiled = t.compile((a: Tensor) => t.add(t.linear(a, tensorW!), tensorC!));
      const eager = t.add(t.linear(tensorX!, tensorW!), tensorC!).toFlatArray();
      for (let call = 0; call < 3; call++) compiled(tensorX!).dispose();
      const values = compiled(tensorX!).toFlatArray();
      expect(compiled.explain()[0]!.accumulatedProducts).toBe(1);
      const product = chain.product([0, 1]).bound([x, w]);
      const [u, unitOfSums] = [unitRoundoff[low]!, unitRoundoff.float32!];
      let beyond = 0;
      values.forEach((value, i) => {
        const exact = product.exact[i]! + c.exact[i]!;
        // The product's bound without its rounding to low precision.
        const sums =
          (product.bound[i]! - u * Math.abs(product.exact[i]!)) * (1 + u) + 2 * unitOfSums * Math.abs(exact);
        expect(Math.abs(value - exact)).toBeLessThanOrEqual(u * Math.abs(exact) + sums);
        // The omitted rounding, and one of either sum.
        const apart = u * Math.abs(product.exact[i]!) + 2 * (u * Math.abs(exact) + sums);
        expect(Math.abs(value - eager[i]!)).toBeLessThanOrEqual(apart);
        if (Math.abs(eager[i]! - exact) > u * Math.abs(exact) + sums) beyond++;
      });
      // Eager code, which rounds the product as well, is not within the closer bound.
      expect(beyond).toBeGreaterThan(0);
    });
  });
});
