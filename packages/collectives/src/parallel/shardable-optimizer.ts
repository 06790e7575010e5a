import { RooflineError, type Tensor, describeValue } from '@roofline/tensor-core';
import type { ShardableState } from './shard-states.ts';

/** Parameters with hyperparameters of their own. */
export type ShardableGroup<H> = { readonly parameters: Iterable<Tensor> } & Partial<H>;
/** What an optimizer updates: tensors, or groups of them. */
export type ShardableParameters<H> = Iterable<Tensor> | Iterable<ShardableGroup<H>>;

/** What can be split: the optimizers of @roofline/optim, and those that extend its Optimizer. */
export interface ShardableOptimizer<H> {
  readonly groups: readonly ({ readonly parameters: readonly Tensor[] } & H)[];
  learningRate: number;
  parameters(): Tensor[];
  /** `onGroupUpdated` is called with the index of each group once it has been updated. */
  step(onGroupUpdated: (group: number) => void): void;
  stepUnless(skip: Tensor, onGroupUpdated: (group: number) => void): void;
  zeroGrad(): void;
  stateDict(): ShardableState;
  loadStateDict(state: ShardableState): void;
  dispose(): void;
}

/** The class of an optimizer that can be split, such as AdamW. */
export type OptimizerClass<H> = new (
  parameters: ShardableParameters<H>,
  options?: Partial<H>,
) => ShardableOptimizer<H>;

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless it is the class of an optimizer. */
export function requireOptimizerClass<H>(owner: string, Optimizer: OptimizerClass<H>): void {
  const { step } = ((Optimizer as { prototype?: object } | undefined)?.prototype ?? {}) as { step?: unknown };
  if (typeof step === 'function') return;
  throw new RooflineError(
    'ARGUMENT',
    `${owner}: takes the class of an optimizer, such as AdamW, not ${describeValue(Optimizer)}.`,
  );
}
