import { type Tensor, checkNumber, checkOptions } from '@roofline/tensor-core';
import { Embedding } from '../layers/embedding.ts';
import { type AnyModule, requireModule } from '../module/module.ts';

/** Options of `parameterGroups`. */
export interface ParameterGroupsOptions {
  /** Of the weights of products. Default 0.1. */
  readonly weightDecay?: number;
}

/** Parameters with the decay of their weights, as optimizers take them. */
export interface DecayGroup {
  readonly parameters: readonly Tensor[];
  readonly weightDecay: number;
}

/**
 * A model's parameters in two groups for an optimizer: the weights of its products with `weightDecay`, and without any the
 * embeddings, and what has fewer than two dimensions, as norms and biases (Brown et al. 2020; Karpathy, minGPT). A head that is tied
 * to the embeddings is one of them. A group that would be empty is left out. Throws a RooflineError (code RANGE) for a decay below
 * zero.
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
  checkOptions('parameterGroups', options, ['weightDecay']);
  const { weightDecay = 0.1 } = options;
  const isDecay = (value: number) => value >= 0 && value < Infinity;
  checkNumber('parameterGroups', 'weightDecay', weightDecay, 'a finite number of zero or more', isDecay);
  const modules = [...model.namedModules()].map(([, module]) => module);
  const embeddings = new Set(
    modules.filter((module) => module instanceof Embedding).map(({ weight }) => weight),
  );
  const all = [...model.parameters()];
  const isDecayed = (parameter: Tensor) => parameter.rank >= 2 && !embeddings.has(parameter);
  return [
    { parameters: all.filter(isDecayed), weightDecay },
    { parameters: all.filter((parameter) => !isDecayed(parameter)), weightDecay: 0 },
  ].filter(({ parameters }) => parameters.length > 0);
}
