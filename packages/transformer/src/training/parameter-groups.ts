import {
  RooflineError,
  type Tensor,
  checkNumber,
  checkOptions,
  describeValue,
  requireTensor,
} from '@roofline/tensor-core';
import { Embedding } from '../layers/embedding.ts';
import { PositionEmbedding } from '../layers/position-embedding.ts';
import { type AnyModule, requireModule } from '../module/module.ts';

/** Options of `parameterGroups`. */
export interface ParameterGroupsOptions {
  /** Of the weights of products. Default 0.1. */
  readonly weightDecay?: number;
  /** This rank's parts of the model's parameters, `parts()` of what `fullyShard` gave: the groups are of them. Default: all is whole. */
  readonly parts?: Iterable<{ readonly name: string; readonly leaf: Tensor }>;
}

/** Parameters with the decay of their weights, as optimizers take them. */
export interface DecayGroup {
  readonly parameters: readonly Tensor[];
  readonly weightDecay: number;
}

/**
 * A model's parameters in two groups for an optimizer: the weights of its products with `weightDecay`, and without any the embeddings, of
 * tokens and of learned positions, and what has fewer than two dimensions, as norms and biases (Brown et al. 2020; Karpathy, minGPT). A
 * head that is tied to the embeddings is one of them. A group that would be empty is left out, unless it is of `parts`: ranks have the
 * same groups. Throws a RooflineError (code RANGE) for a decay below zero.
 *
 * @example
 * ```ts
 * import { AdamW } from '@roofline/optim';
 * import { TransformerLM, parameterGroups, presetConfig } from '@roofline/transformer';
 *
 * const model = new TransformerLM(presetConfig('tiny'));
 * const optimizer = new AdamW(parameterGroups(model, { weightDecay: 0.1 }), { learningRate: 3e-4 });
 * console.log(optimizer.groups.map(({ weightDecay, parameters }) => [weightDecay, parameters.length]));
 * ```
 */
export function parameterGroups(model: AnyModule, options: ParameterGroupsOptions = {}): DecayGroup[] {
  requireModule('parameterGroups', model);
  checkOptions('parameterGroups', options, ['weightDecay', 'parts']);
  const { weightDecay = 0.1 } = options;
  const parts = options.parts === undefined ? null : checkedParts(options.parts);
  const isDecay = (value: number) => value >= 0 && value < Infinity;
  checkNumber('parameterGroups', 'weightDecay', weightDecay, 'a finite number of zero or more', isDecay);
  const modules = [...model.namedModules()].map(([, module]) => module);
  const embeddings = new Set(
    modules
      .filter((module) => module instanceof Embedding || module instanceof PositionEmbedding)
      .map(({ weight }) => weight),
  );
  const all = [...model.namedParameters()];
  const isDecayed = (parameter: Tensor) => parameter.rank >= 2 && !embeddings.has(parameter);
  const leafOf = parts && new Map(parts.map(({ name, leaf }) => [name, leaf]));
  const groupOf = (wanted: boolean, weightDecay: number) => ({
    parameters: all
      .filter(([, parameter]) => isDecayed(parameter) === wanted)
      .flatMap(([name, parameter]) => (leafOf ? (leafOf.get(name) ?? []) : parameter)),
    weightDecay,
  });
  const groups = [groupOf(true, weightDecay), groupOf(false, 0)];
  return leafOf ? groups : groups.filter(({ parameters }) => parameters.length > 0);
}

function checkedParts(parts: NonNullable<ParameterGroupsOptions['parts']>) {
  if (typeof parts?.[Symbol.iterator] !== 'function')
    throw new RooflineError(
      'ARGUMENT',
      `parameterGroups: parts must be the parts() of what fullyShard() gave, not ${describeValue(parts)}.`,
    );
  const all = [...parts];
  for (const part of all) requireTensor('parameterGroups: the leaf of a part', part?.leaf);
  return all;
}
