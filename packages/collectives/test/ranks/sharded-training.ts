import { deepStrictEqual, ok } from 'node:assert/strict';
import {
  type Tensor,
  cast,
  checkpoint,
  copyInPlace,
  mul,
  noGrad,
  scope,
  slice,
  sum,
  view,
  zeros,
} from '@roofline/tensor-core';
import { SGD } from '@roofline/optim';
import { Embedding, Linear, Module, RMSNorm, TransformerLM, languageModelLoss } from '@roofline/transformer';
import { type FullySharded } from '@roofline/collectives';
import { groupOf } from './group-of.ts';
import { rowsOf, smallModel } from './joined-batch.ts';
import { planUnits } from '../../src/parallel/sharded/parameter-unit.ts';

// What the ranks of fully-sharded.ts train, and what they are held to.

export const { group, device } = await groupOf();
export const { rank, size } = group;
const steps = 3;
export const config = { ...smallModel, layers: 3 };
const tied = { ...config, tieWordEmbeddings: true };

/** The layers of the published assignment's test: an embedding, norms, and linear layers. */
export class Toy extends Module<[ids: Tensor], Tensor> {
  readonly embedding = new Embedding(11, 6, { device });
  readonly blocks: readonly Linear[] = [new Linear(6, 10, { device }), new Linear(10, 6, { device })];
  readonly norm = new RMSNorm(6, { device });
  readonly head = new Linear(6, 5, { device });

  protected compute(ids: Tensor): Tensor {
    let x = this.embedding.forward(ids);
    for (const block of this.blocks) x = block.forward(x);
    return this.head.forward(this.norm.forward(x));
  }
}

/** With a layer that not every loss uses. */
export class Spare extends Toy {
  readonly spare = new Linear(6, 6, { device });
}

/** Of two units. */
export class Pair extends Module<[ids: Tensor], Tensor> {
  readonly blocks: readonly [Embedding, Linear] = [
    new Embedding(11, 6, { device }),
    new Linear(6, 5, { device }),
  ];

  protected compute(ids: Tensor): Tensor {
    return this.blocks[1].forward(this.blocks[0].forward(ids));
  }
}

/** Keeps nothing of its blocks for the backward pass. */
export class Checkpointed extends Toy {
  protected override compute(ids: Tensor): Tensor {
    let x = this.embedding.forward(ids);
    for (const block of this.blocks) x = checkpoint((input) => block.forward(input), x);
    return this.head.forward(this.norm.forward(x));
  }
}

export type Loss<Model> = (model: Model, step: number, of: number | null) => Tensor;

export const languageLoss: Loss<TransformerLM> = (model, step, of) => {
  const { ids, targets } = rowsOf(step, of, { size, device });
  return languageModelLoss(model, ids, targets);
};

export const toyLoss: Loss<Toy> = (model, step, of) => {
  const { ids } = rowsOf(step, of, { size, device });
  const small = cast(mul(cast(ids, 'float32'), 1 / 12), 'int32');
  const output = cast(model.forward(small), 'float32');
  return mul(sum(mul(output, output)), (1 / output.size) * 3);
};

interface Stepping {
  step(): void;
  zeroGrad(): void;
}

export type Trainable = { parameters(): Iterable<Tensor> };
export const sgd = (trainable: Trainable, learningRate = 0.1) =>
  new SGD(trainable.parameters(), { learningRate });
export const numbers = (tensor: Tensor) => tensor.toFlatArray();
export const valuesOf = (named: Iterable<readonly [string, Tensor | null]>) =>
  Object.fromEntries([...mapNumbers(named)]);
function* mapNumbers(named: Iterable<readonly [string, Tensor | null]>) {
  for (const [name, tensor] of named) yield [name, tensor && numbers(tensor)] as const;
}

export function train<Model>(
  model: Model,
  loss: Loss<Model>,
  optimizer: Stepping,
  of: number | null,
  betweenPassAndStep: () => void = () => {},
): number[] {
  return Array.from({ length: steps }, (_, step) =>
    scope(() => {
      const value = loss(model, step, of);
      value.backward();
      betweenPassAndStep();
      optimizer.step();
      optimizer.zeroGrad();
      return value.item();
    }),
  );
}

/** The loss after a step, between which and its backward passes a forward pass may run for itself. */
export function lossAfterStep<Model>(
  model: Model,
  loss: Loss<Model>,
  optimizer: Stepping,
  looks: boolean,
): number {
  // From the second pass on the order of the backward pass is known.
  for (const step of [0, 1]) scope(() => loss(model, step, rank).backward());
  if (looks) scope(() => void loss(model, 2, rank).item());
  optimizer.step();
  optimizer.zeroGrad();
  return scope(() => loss(model, 3, rank).item());
}

/** Averages a replica's gradients unit by unit with the collectives that sharding has, over memory laid out alike. */
export function averageByUnits(units: ReturnType<typeof planUnits>): void {
  const alignment = 16;
  noGrad(() =>
    scope(() => {
      for (const { parameters } of units) {
        let end = 0;
        const starts = parameters.map(([, { size: elements }]) => {
          const start = end;
          end += Math.ceil(elements / alignment) * alignment;
          return start;
        });
        const pieceSize = Math.ceil(end / size / alignment) * alignment;
        const [flat, piece] = [zeros([pieceSize * size], { device }), zeros([pieceSize], { device })];
        const part = (i: number, tensor: Tensor) =>
          view(slice(flat, 0, starts[i]!, starts[i]! + tensor.size), tensor.shape);
        for (const [i, [, tensor]] of parameters.entries()) copyInPlace(part(i, tensor), tensor.grad!);
        group.reduceScatter(piece, flat, { op: 'average' }).wait();
        group.allGather(flat, piece).wait();
        for (const [i, [, tensor]] of parameters.entries()) copyInPlace(tensor.grad!, part(i, tensor));
      }
    }),
  );
}

export function close(
  what: string,
  a: Record<string, number[] | null>,
  b: Record<string, number[] | null>,
  bound: number,
): void {
  deepStrictEqual(Object.keys(a), Object.keys(b), what);
  for (const [name, values] of Object.entries(a))
    values?.forEach((value, i) => {
      const other = b[name]![i]!;
      ok(
        Math.abs(value - other) <= bound * Math.max(1, Math.abs(other)),
        `${what}: ${name}[${i}] ${value} ${other}`,
      );
    });
}

export const models = {
  toy: { make: () => new Toy(), loss: toyLoss as Loss<never> },
  language: { make: () => new TransformerLM(config, { seed: 3, device }), loss: languageLoss as Loss<never> },
  tied: { make: () => new TransformerLM(tied, { seed: 3, device }), loss: languageLoss as Loss<never> },
} as const;
export type AnyModel = Toy | Pair | TransformerLM;

/** One rank's model, whose weights are drawn alike on all of them. */
export function alike(make: () => AnyModel): AnyModel {
  const model = make();
  noGrad(() => {
    for (const parameter of model.parameters()) group.broadcast(parameter, 0).wait();
  });
  return model;
}

export function copyParameters(to: AnyModel, from: AnyModel): void {
  const sources = Object.fromEntries(from.namedParameters());
  noGrad(() => {
    for (const [name, target] of to.namedParameters()) copyInPlace(target, sources[name]!);
  });
}

/** In the order of the units. */
export function sorted<Value>(
  values: Record<string, Value>,
  sharded: FullySharded<AnyModel>,
): Record<string, Value> {
  return Object.fromEntries([...sharded.shapes()].map(([name]) => [name, values[name]!]));
}
