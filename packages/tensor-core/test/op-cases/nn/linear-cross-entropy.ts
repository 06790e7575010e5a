import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import type { DType, Device, Tensor } from '../../../src/index.ts';
import { relativeError, sample, tensorOf, unitRoundoff } from '../support/samples.ts';
import { expectFiniteDifferences, floatingPointDTypes } from '../support/vector-jacobian.ts';

const [rows, features, classes] = [11, 6, 19];
const ignored = [2, 3, 10];
const half = 1 / 2;

interface Operands {
  readonly x: Tensor;
  readonly weight: Tensor;
  readonly targets: Tensor;
}

interface Outcome {
  readonly loss: number;
  readonly ofX: number[];
  readonly ofWeight: number[];
}

type Loss = (x: Tensor, weight: Tensor, targets: Tensor) => Tensor;

const whole: Loss = (x, weight, targets) => t.crossEntropy(t.linear(x, weight), targets);
const chunked =
  (chunkRows?: number): Loss =>
  (x, weight, targets) =>
    t.linearCrossEntropy(x, weight, targets, chunkRows === undefined ? {} : { chunkRows });

function targetsFor(count: number, most: number, without: readonly number[], device: Device): Tensor {
  const values = Array.from({ length: count }, (_, i) => (without.includes(i) ? -100 : (i * 7 + 3) % most));
  return tensorOf(values, [count], 'int64', device);
}

function operandsOf(dtype: DType, device: Device, weightDType = dtype): Operands {
  return {
    x: sample([rows, features], { dtype, domain: [-1, 1], seed: 5 }, device),
    weight: sample([classes, features], { dtype: weightDType, domain: [-2, 2], seed: 6 }, device),
    targets: targetsFor(rows, classes, ignored, device),
  };
}

/** The loss, and both gradients times `factor`. */
function outcomeOf(loss: Loss, { x, weight, targets }: Operands, factor = 1): Outcome {
  return t.scope(() => {
    const [leafX, leafWeight] = [x.detach().requiresGrad_(), weight.detach().requiresGrad_()];
    const value = loss(leafX, leafWeight, targets);
    if (factor === 1) value.backward();
    else t.mul(value, factor).backward();
    expect([leafX.grad!.dtype, leafWeight.grad!.dtype]).toEqual([x.dtype, weight.dtype]);
    return {
      loss: value.item() as number,
      ofX: leafX.grad!.toFlatArray() as number[],
      ofWeight: leafWeight.grad!.toFlatArray() as number[],
    };
  });
}

/** Head and loss in float64 on the CPU. */
function exactly({ x, weight, targets }: Operands, factor = 1): Outcome {
  const wide = (tensor: Tensor) => t.cast(tensor.to('cpu'), 'float64');
  return t.scope(() =>
    outcomeOf(whole, { x: wide(x), weight: wide(weight), targets: targets.to('cpu') }, factor),
  );
}

const parts = ['loss', 'ofX', 'ofWeight'] as const;
const numbersOf = (outcome: Outcome, part: (typeof parts)[number]): number[] => [outcome[part]].flat();

/** Its errors may be twice those of head and loss by themselves, and a few roundings. */
function expectAsGood(loss: Loss, operands: Operands, wrap = (fn: Loss): Loss => fn, low?: DType): void {
  const roundoff = unitRoundoff[low ?? operands.x.dtype]! * (operands.x.dtype === 'float64' ? 64 : 1);
  for (const factor of [1, -0.3]) {
    const exact = exactly(operands, factor);
    const [own, other] = [outcomeOf(wrap(loss), operands, factor), outcomeOf(wrap(whole), operands, factor)];
    for (const part of parts) {
      const errorOf = (outcome: Outcome) => relativeError(numbersOf(outcome, part), numbersOf(exact, part));
      expect(errorOf(own)).toBeLessThanOrEqual(2 * errorOf(other) + 4 * roundoff);
      expect(errorOf(own)).toBeLessThanOrEqual(64 * roundoff);
    }
  }
}

/** linearCrossEntropy on one device. */
export function describeLinearCrossEntropy(open: () => Device, dtypes = floatingPointDTypes): void {
  it.each(
    dtypes.flatMap((dtype) => [1, 3, 4, 11, 100, undefined].map((chunkRows) => [dtype, chunkRows] as const)),
  )('agrees with float64 as head and crossEntropy do: %s, chunks of %s rows', (dtype, chunkRows) => {
    t.scope(() => expectAsGood(chunked(chunkRows), operandsOf(dtype, open())));
  });

  it.each(['float16', 'bfloat16'] as const)('does so under autocast to %s', (low) => {
    const wrap =
      (fn: Loss): Loss =>
      (...given) =>
        t.autocast(low, () => fn(...given));
    t.scope(() => {
      for (const chunkRows of [4, undefined]) {
        expectAsGood(chunked(chunkRows), operandsOf('float32', open()), wrap, low);
        const mixed = operandsOf(low, open(), 'float32');
        expectAsGood(chunked(chunkRows), mixed, wrap, low);
        // A weight that is made is cast once for all chunks, one that is a parameter once for all that read it.
        const made: Loss = (x, weight, targets) => chunked(chunkRows)(x, t.mul(weight, 1), targets);
        expectAsGood(made, mixed, wrap, low);
      }
    });
  });

  it.each(dtypes.filter((dtype) => dtype !== 'float16'))(
    'gives, as the last op, the bits of head and crossEntropy where it is one chunk: %s',
    (dtype) => {
      t.scope(() => {
        const operands = operandsOf(dtype, open());
        const [own, other] = [outcomeOf(chunked(), operands), outcomeOf(whole, operands)];
        expect(own.ofX).toEqual(other.ofX);
        expect(own.ofWeight).toEqual(other.ofWeight);
      });
    },
  );

  it('has the gradient that finite differences show', () => {
    t.scope(() => {
      const { x, weight, targets } = operandsOf('float64', open());
      expectFiniteDifferences((...given) => chunked(4)(given[0]!, given[1]!, targets), [x, weight]);
    });
  });

  it('keeps the digits of float16 however many rows share the mean', () => {
    t.scope(() => {
      const device = open();
      const draw = (shape: number[], seed: number) =>
        sample(shape, { dtype: 'float16', domain: [-half, half], seed }, device);
      const operands = {
        x: draw([3000, 4], 1),
        weight: draw([64, 4], 2),
        targets: targetsFor(3000, 64, [], device),
      };
      const [own, exact] = [outcomeOf(chunked(700), operands), exactly(operands)];
      // Those of x, of 1e-4 and less, are themselves numbers of few digits.
      expect(relativeError(own.ofWeight, exact.ofWeight)).toBeLessThan(4 * unitRoundoff.float16!);
    });
  });

  it('makes the gradients that are wanted alone', () => {
    t.scope(() => {
      const { x, weight, targets } = operandsOf('float32', open());
      const both = outcomeOf(chunked(4), { x, weight, targets });
      const leafX = x.detach().requiresGrad_();
      chunked(4)(leafX, weight, targets).backward();
      expect(leafX.grad!.toFlatArray()).toEqual(both.ofX);
      const leafWeight = weight.detach().requiresGrad_();
      chunked(4)(x, leafWeight, targets).backward();
      expect(leafWeight.grad!.toFlatArray()).toEqual(both.ofWeight);
      const ops: string[] = [];
      const stop = t.observeOps({ before: ({ name }) => void ops.push(name) });
      const loss = t.noGrad(() => chunked(4)(leafX, leafWeight, targets));
      stop();
      expect(loss.item()).toBe(both.loss);
      expect(ops.filter((name) => name === 'matmul')).toHaveLength(3);
    });
  });

  it('is NaN where no row counts, without gradients', () => {
    t.scope(() => {
      const operands = operandsOf('float32', open());
      const none = {
        ...operands,
        targets: tensorOf(new Array<number>(rows).fill(-100), [rows], 'int64', open()),
      };
      const { loss, ofX, ofWeight } = outcomeOf(chunked(4), none);
      expect(loss).toBeNaN();
      expect([...ofX, ...ofWeight].every((value) => Math.abs(value) === 0)).toBe(true);
      // One chunk without a row that counts changes nothing.
      const first = { ...operands, targets: targetsFor(rows, classes, [0, 1, 2, 3, 9], open()) };
      expectAsGood(chunked(2), first);
      const other: Loss = (x, weight, targets) =>
        t.linearCrossEntropy(x, weight, t.where(t.equal(targets, -100), 7, targets), {
          ignoreIndex: 7,
          chunkRows: 3,
        });
      const seven = { ...operands, targets: t.where(t.equal(operands.targets, 7), -100, operands.targets) };
      expect(outcomeOf(other, seven)).toEqual(outcomeOf(chunked(3), seven));
    });
  });

  it('gives gradients one time', () => {
    t.scope(() => {
      const { x, weight, targets } = operandsOf('float32', open());
      const loss = chunked(4)(x.detach().requiresGrad_(), weight, targets);
      loss.backward(undefined, { retainGraph: true });
      const again = () => loss.backward(undefined, { retainGraph: true });
      expect(again).toThrow(t.AutogradError);
      expect(again).toThrow('an earlier backward pass has handed them out; call it again');
    });
  });

  it('repeats in a checkpoint, with the same bits', () => {
    t.scope(() => {
      const operands = operandsOf('float32', open());
      const repeated: Loss = (x, weight, targets) => t.checkpoint((y) => chunked(4)(y, weight, targets), x);
      expect(outcomeOf(repeated, operands)).toEqual(outcomeOf(chunked(4), operands));
    });
  });

  it('compiles to the same bits', () => {
    t.scope(() => {
      for (const dtype of dtypes) {
        const { x, weight, targets } = operandsOf(dtype, open());
        const leaves = [x.detach().requiresGrad_(), weight.detach().requiresGrad_()] as const;
        const step = t.compile((on: Tensor) => {
          for (const leaf of leaves) leaf.grad = null;
          const loss = chunked(4)(...leaves, on);
          loss.backward();
          return loss.detach();
        });
        const outcomes = [1, 2, 3, 4].map(() => {
          const loss = step(targets).item();
          return [loss, ...leaves.map((leaf) => leaf.grad!.toFlatArray())];
        });
        // Gradients are there from the second call on.
        expect(step.cache.hits).toBe(2);
        for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
        step.dispose();
      }
    });
  });

  it('names operands that do not fit', () => {
    t.scope(() => {
      const { x, weight, targets } = operandsOf('float32', open());
      const call =
        (...given: unknown[]) =>
        () =>
          (t.linearCrossEntropy as (...all: unknown[]) => Tensor)(...given);
      expect(call(x, t.transpose(weight), targets)).toThrow(
        'linearCrossEntropy: takes x [N, d], a weight [V, d] and targets [N], got [11, 6], [6, 19] and [11]',
      );
      expect(call(x, weight, t.slice(targets, 0, 0, 5))).toThrow(t.ShapeError);
      expect(call(x, weight, t.cast(targets, 'float32'))).toThrow('targets must be int32 or int64');
      expect(call(t.cast(x, 'int32'), weight, targets)).toThrow(t.DTypeError);
      expect(call(t.cast(x, 'float64'), weight, targets)).toThrow(t.DTypeError);
      expect(call(t.slice(x, 0, 0, 0), weight, t.slice(targets, 0, 0, 0))).toThrow(
        '[0, 19] without elements',
      );
      expect(call(x, weight, targets, { chunkRows: 0 })).toThrow('chunkRows');
      expect(call(x, weight, targets, { chunk: 4 })).toThrow('chunk');
    });
  });

  it.each([-1, classes, 1000])('refuses target %i', (target) => {
    t.scope(() => {
      const { x, weight } = operandsOf('float32', open());
      const values = Array.from({ length: rows }, (_, i) => (i === 5 ? target : i));
      const targets = tensorOf(values, [rows], 'int64', open());
      const loss = () => chunked(4)(x, weight, targets);
      if (x.device.type === 'cpu') expect(loss).toThrow(`linearCrossEntropy: target ${target} at position 5`);
      else expect(loss().item()).toBeNaN();
    });
  });
}
