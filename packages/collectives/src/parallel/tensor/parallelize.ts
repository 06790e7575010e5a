import { RooflineError, type Tensor, add, cast, dependOn, reshape } from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { Mesh, groupAlong } from '../mesh.ts';
import {
  type DividableLinear,
  type DividableModel,
  type DividableModule,
  type DividableNorm,
  checkDividable,
  isDivided,
  noteDivided,
  owner,
} from './dividable-model.ts';
import { type DivisionPlan, divideParameters } from './divide-parameters.ts';
import { DividedVocabulary } from './divided-vocabulary.ts';
import { SharedHeads, copiesOfHeads } from './shared-heads.ts';
import { TensorParallel } from './tensor-parallel.ts';
import { TokenShards } from './token-shards.ts';

/**
 * Divides the layers of `model` over the ranks along the axis `tensor` of a mesh, in place, so that all of them calculate each token
 * together (tensor parallelism: Shoeybi et al. 2019, "Megatron-LM"; with the norms on parts of the tokens: Korthikanti et al. 2022,
 * "Reducing Activation Recomputation in Large Transformer Models"). Each rank keeps
 *
 * - its heads: rows of the projections of queries, keys and values, and columns of the output projection; where keys and values have
 *   fewer heads than there are ranks, the ranks whose queries share a head each have it;
 * - its part of the feed-forward width: rows of w1 and w3, columns of w2;
 * - its part of the vocabulary: rows of the embedding and of the head, tied or not;
 * - norms, position embeddings and the biases of what is summed, which all ranks have alike.
 *
 * The tensor ranks get the same tokens, and `languageModelLoss`, `generate` and optimizers take the model as before. Data
 * parallelism and sharding go over another axis of the mesh, after this:
 *
 *     const mesh = await Mesh.create(group, { shard: 2, tensor: 2 });
 *     const model = deferWeights(() => new TransformerLM(config, { device }));
 *     const divided = parallelize(model, mesh);
 *     const sharded = fullyShard(model, mesh, { computeDtype: 'bfloat16' });
 *
 * A third axis, `replicate` before `shard`, makes several such models, whose gradients are averaged.
 *
 * All tensor ranks begin with the first one's parameters. Where the model draws random numbers of its own (dropout), give each
 * rank a generator of another seed: no two ranks calculate the same elements. Throws a RooflineError for what is not a
 * TransformerLM, has been divided, or has sizes that the ranks cannot divide. A collective.
 */
export function parallelize<Model extends DividableModel>(
  model: Model,
  mesh: Mesh | ProcessGroup,
): TensorParallel<Model> {
  const group = groupAlong(owner, mesh, 'tensor');
  checkDividable(model, group.size);
  if (isDivided(model)) throw new RooflineError('PARAMETERS', `${owner}: the model is divided already.`);
  // What fullyShard() puts in the place of a module's own.
  if (Object.hasOwn(model.lmHead, 'forward'))
    throw new RooflineError(
      'PARAMETERS',
      `${owner}: the model is sharded; call parallelize() first, then fullyShard().`,
    );
  const { heads, keyValueHeads = heads } = model.config;
  const copies = copiesOfHeads(keyValueHeads, group.size);
  const divisions = divideParameters(model, planDivisions(model, copies), group);
  const [shards, vocabulary] = [
    new TokenShards(group),
    new DividedVocabulary(model.config.vocabularySize, group, model.lmHead.weight),
  ];
  divideCalculation(model, shards, vocabulary);
  if (copies > 1) shareHeads(model, new SharedHeads(copies, group));
  noteDivided(model);
  const groups = { all: mesh instanceof Mesh ? mesh.group : mesh, tensor: group };
  return new TensorParallel(model, groups, divisions, () => vocabulary.dispose());
}

/** Which parameters are divided, and along which dimension; all others stay whole. As many ranks have each head of keys. */
function planDivisions(model: DividableModel, copiesOfKeys: number): Map<Tensor, DivisionPlan> {
  const plan = new Map<Tensor, DivisionPlan>();
  const columnWise = ({ weight, bias }: Pick<DividableLinear, 'weight' | 'bias'>, copies = 1) => {
    plan.set(weight, { dimension: 0, copies });
    if (bias) plan.set(bias, { dimension: 0, copies });
  };
  for (const { attn, ffn } of model.layers) {
    for (const linear of [attn.qProj, ffn.w1, ffn.w3]) if (linear) columnWise(linear);
    for (const linear of [attn.kProj, attn.vProj]) columnWise(linear, copiesOfKeys);
    for (const { weight } of [attn.outputProj, ffn.w2]) plan.set(weight, { dimension: 1, copies: 1 });
  }
  plan.set(model.tokenEmbeddings.weight, { dimension: 0, copies: 1 });
  columnWise(model.lmHead);
  return plan;
}

/** What goes around the calculation of each layer. */
function divideCalculation(model: DividableModel, shards: TokenShards, vocabulary: DividedVocabulary): void {
  wrap(model.tokenEmbeddings, (lookUp, ids) => {
    shards.begin(ids);
    return shards.leave(vocabulary.embed(ids, lookUp));
  });
  const positions = model.positionEmbeddings;
  if (positions)
    wrap(positions, (rows, ...place) => {
      const shared = { weight: shards.shared(positions.weight) };
      return shards.ofPositions(withParameters(positions, shared, () => rows(...place)));
    });
  for (const { attn, ffn, ln1, ln2 } of model.layers) {
    for (const norm of [ln1, ln2, attn.qNorm, attn.kNorm]) if (norm) shareNorm(norm, shards);
    wrap(attn, (attend, x, ...cache) => attend(shards.enter(x), ...cache));
    wrap(ffn, (network, x) => network(shards.enter(x)));
    for (const linear of [attn.outputProj, ffn.w2]) divideRowWise(linear, shards);
  }
  shareNorm(model.lnFinal, shards);
  const { lmHead } = model;
  wrap(lmHead, (head, features) => vocabulary.gatherLogits(head(shards.enter(features))));
  model.headLoss = (features, targets, logits) => {
    const x = shards.enter(features);
    const rows = reshape(x, [targets.size, x.shape[2]!]);
    // Read here in place of the head's own call.
    const weight = dependOn(() => lmHead.weight);
    return vocabulary.loss(rows, weight, reshape(targets, [targets.size]), logits);
  };
}

/** A norm whose parameters each rank uses for its tokens, or its heads. */
function shareNorm(norm: DividableNorm, shards: TokenShards): void {
  shareParameters(norm, (parameter) => shards.shared(parameter));
}

/** Projections of keys and values whose heads several ranks use, each for its queries. */
function shareHeads(model: DividableModel, heads: SharedHeads): void {
  for (const { attn } of model.layers)
    for (const linear of [attn.kProj, attn.vProj])
      shareParameters(linear, (parameter) => heads.share(parameter));
}

/** Has a layer calculate with what `share` makes of its parameters. */
function shareParameters(
  layer: DividableModule & { readonly weight: Tensor; readonly bias?: Tensor | null },
  share: (parameter: Tensor) => Tensor,
): void {
  wrap(layer, (calculate, x) => {
    const { weight, bias } = layer;
    const shared = { weight: share(weight), ...(bias && { bias: share(bias) }) };
    return withParameters(layer, shared, () => calculate(x));
  });
}

/** A linear layer whose inputs are divided: the sum over the ranks, to which the bias is added once. */
function divideRowWise(linear: DividableLinear, shards: TokenShards): void {
  wrap(linear, (multiply, x) => {
    const y = shards.leave(withParameters(linear, { bias: null }, () => multiply(x)));
    return linear.bias === null ? y : add(y, cast(shards.shared(linear.bias), y.dtype));
  });
}

/** Has `around` run in place of what a module calculates. */
function wrap<Inputs extends readonly unknown[]>(
  module: DividableModule<Inputs>,
  around: (calculation: (...inputs: Inputs) => Tensor, ...inputs: Inputs) => Tensor,
): void {
  module.wrap(around as unknown as Parameters<typeof module.wrap>[0]);
}

/** Runs a layer's calculation with other tensors in the place of its parameters. */
function withParameters<Layer extends object, Result>(
  layer: Layer,
  parameters: Partial<Layer>,
  run: () => Result,
): Result {
  const own = Object.fromEntries(Object.keys(parameters).map((name) => [name, layer[name as keyof Layer]]));
  Object.assign(layer, parameters);
  try {
    return run();
  } finally {
    Object.assign(layer, own);
  }
}
