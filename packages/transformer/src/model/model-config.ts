import { RooflineError, checkOptions, describeValue } from '@roofline/tensor-core';
import { type AttentionBias, attentionBiases } from '../layers/attention-bias.ts';
import { type FeedForward, type Norm, feedForwards, norms } from '../layers/block-kinds.ts';
import { type RopeScaling, checkRopeScaling } from '../layers/rope-scaling.ts';

export const positionKinds = ['rotary', 'learned'] as const;

/**
 * The sizes of a language model, and which of the known layers it is made of. What is left out is as in the presets: attention of
 * as many heads of keys as of queries, SwiGLU, RMSNorm, rotary positions, no biases.
 */
export interface ModelConfig {
  /** Tokens there are: ids run from 0 to this, exclusive. */
  readonly vocabularySize: number;
  /** The longest sequence that the model takes. */
  readonly contextLength: number;
  /** Features of a token between the layers (d_model). */
  readonly modelDimension: number;
  /** Features inside the feed-forward network (d_ff). */
  readonly feedForwardDimension: number;
  readonly layers: number;
  /** Attention heads. */
  readonly heads: number;
  /** Heads of keys and values, each shared by heads / keyValueHeads of queries (Ainslie et al. 2023). Default `heads`. */
  readonly keyValueHeads?: number;
  /** Features of a head. Default modelDimension / heads. */
  readonly headDimension?: number;
  /** Default `none`. */
  readonly attentionBias?: AttentionBias;
  /** Whether the queries and keys of each head pass a norm before they are turned, as in Qwen3. Default false. */
  readonly queryKeyNorm?: boolean;
  /** Default `swiglu`. */
  readonly feedForward?: FeedForward;
  /** Default false. */
  readonly feedForwardBias?: boolean;
  /** RMSNorm, or LayerNorm with its bias. Default `rms`. */
  readonly norm?: Norm;
  /** What norms add to the mean square. Default 1e-5. */
  readonly normEpsilon?: number;
  /** Rotary positions in each layer, or vectors learned for each position. Default `rotary`. */
  readonly positions?: (typeof positionKinds)[number];
  /** The base of the rotary position angles. Default 10000. */
  readonly ropeTheta?: number;
  /** How rotary positions of a shorter context are stretched. Default: not at all. */
  readonly ropeScaling?: RopeScaling;
  /**
   * How many tokens a token sees, itself and those before it (`sliding_window` of `transformers`). What it hides is calculated all the same by
   * plain attention. Default: all.
   */
  readonly slidingWindow?: number;
  /** Layers, counted from 0, in which a token sees all tokens before it in spite of `slidingWindow`. Default none. */
  readonly fullAttentionLayers?: readonly number[];
  /** Whether the head's weights are the embeddings', one parameter (Press & Wolf 2017). Default false. */
  readonly tieWordEmbeddings?: boolean;
}

/** What a config may be without. */
type Optional = 'ropeScaling' | 'slidingWindow';

/** A config of which nothing is left out but how positions are scaled, and the window. */
export type WholeConfig = Required<Omit<ModelConfig, Optional>> & Pick<ModelConfig, Optional>;

/** The config with what is left out as it is then. */
export function wholeConfig(config: ModelConfig): WholeConfig {
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
  return {
    keyValueHeads: config.heads,
    headDimension: config.modelDimension / config.heads,
    ...{ attentionBias: 'none', queryKeyNorm: false, feedForward: 'swiglu', feedForwardBias: false },
    ...{ norm: 'rms', normEpsilon: 1e-5, positions: 'rotary', ropeTheta: 10_000, tieWordEmbeddings: false },
    fullAttentionLayers: [],
    ...(given as unknown as ModelConfig),
  };
}

/** Sizes that do not fit together. */
export class ModelConfigError extends RooflineError {
  constructor(message: string) {
    super('MODEL_CONFIG', message);
  }
}

const sizes = [
  ...([
    'vocabularySize',
    'contextLength',
    'modelDimension',
    'feedForwardDimension',
    'layers',
    'heads',
  ] as const),
] as const;

const choices = {
  attentionBias: attentionBiases,
  feedForward: feedForwards,
  norm: norms,
  positions: positionKinds,
} as const;
const flags = ['queryKeyNorm', 'feedForwardBias', 'tieWordEmbeddings'] as const;

/** What a config may hold. */
export const configNames: readonly (keyof ModelConfig)[] = [
  ...sizes,
  ...(['keyValueHeads', 'headDimension', 'attentionBias', 'queryKeyNorm', 'feedForward'] as const),
  ...(['feedForwardBias', 'norm', 'normEpsilon', 'positions', 'ropeTheta', 'ropeScaling'] as const),
  ...(['slidingWindow', 'fullAttentionLayers', 'tieWordEmbeddings'] as const),
];

/** How many tokens a token sees in a layer; null for all. */
export function windowOfLayer(
  { slidingWindow, fullAttentionLayers }: ModelConfig,
  layer: number,
): number | null {
  return fullAttentionLayers?.includes(layer) ? null : (slidingWindow ?? null);
}

/**
 * Throws a ModelConfigError, which names `owner`, unless a model of these sizes can be built, and a RooflineError (code OPTION) for names
 * that do not exist.
 */
export function checkConfig(owner: string, config: ModelConfig): void {
  checkOptions(`${owner}: the model config`, config, configNames);
  for (const name of sizes) checkSize(owner, name, config[name]);
  for (const name of ['keyValueHeads', 'headDimension', 'slidingWindow'] as const)
    if (config[name] !== undefined) checkSize(owner, name, config[name]);
  checkHeads(owner, config);
  const { ropeTheta, normEpsilon } = config;
  const isTheta = typeof ropeTheta === 'number' && ropeTheta > 0 && ropeTheta < Infinity;
  if (ropeTheta !== undefined && !isTheta)
    throw misfit(owner, 'ropeTheta must be positive and finite', ropeTheta);
  const isEpsilon = typeof normEpsilon === 'number' && normEpsilon >= 0 && normEpsilon < Infinity;
  if (normEpsilon !== undefined && !isEpsilon)
    throw misfit(owner, 'normEpsilon must be a finite number of zero or more', normEpsilon);
  for (const name of flags) {
    const value = config[name];
    if (![undefined, true, false].includes(value))
      throw misfit(owner, `${name} must be true or false`, value);
  }
  for (const [name, known] of Object.entries(choices)) {
    const value = config[name as keyof typeof choices];
    if (value !== undefined && !(known as readonly string[]).includes(value))
      throw misfit(owner, `${name} must be ${known.join(' or ')}`, value);
  }
  if (config.ropeScaling !== undefined) checkScaling(owner, config, config.ropeScaling);
  checkFullLayers(owner, config);
}

function checkFullLayers(owner: string, config: ModelConfig): void {
  const { fullAttentionLayers: full, slidingWindow, layers } = config;
  if (full === undefined) return;
  const isLayer = (layer: unknown) =>
    Number.isInteger(layer) && (layer as number) >= 0 && (layer as number) < layers;
  if (!Array.isArray(full) || !full.every(isLayer) || new Set(full).size < full.length)
    throw misfit(owner, `fullAttentionLayers must be different numbers of layers, 0 to ${layers - 1}`, full);
  if (full.length > 0 && slidingWindow === undefined)
    throw new ModelConfigError(`${owner}: fullAttentionLayers needs a slidingWindow of the other layers.`);
}

function misfit(owner: string, rule: string, value: unknown): ModelConfigError {
  return new ModelConfigError(`${owner}: ${rule}, got ${describeValue(value)}.`);
}

function checkSize(owner: string, name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1)
    throw misfit(owner, `${name} must be a whole number of one or more`, value);
}

function checkHeads(owner: string, config: ModelConfig): void {
  const { modelDimension, heads, keyValueHeads = heads, headDimension, positions = 'rotary' } = config;
  const pairs = positions === 'rotary' ? 2 : 1;
  const why =
    pairs === 2
      ? 'rotary positions turn pairs of features inside each head.'
      : 'each head has as many features.';
  if (headDimension === undefined && modelDimension % (pairs * heads) !== 0) {
    throw new ModelConfigError(
      `${owner}: modelDimension ${modelDimension} must be a multiple of ${pairs === 2 ? '2 · heads' : 'heads'} = ` +
        `${pairs * heads}: ${why}`,
    );
  }
  if (headDimension !== undefined && headDimension % pairs !== 0)
    throw new ModelConfigError(`${owner}: headDimension ${headDimension} must be even: ${why}`);
  if (heads % keyValueHeads !== 0) {
    throw new ModelConfigError(
      `${owner}: heads ${heads} must be a multiple of keyValueHeads ${keyValueHeads}: as many heads share keys and values.`,
    );
  }
}

function checkScaling(owner: string, { positions = 'rotary' }: ModelConfig, scaling: RopeScaling): void {
  if (positions !== 'rotary')
    throw new ModelConfigError(`${owner}: ropeScaling needs rotary positions, not ${positions}.`);
  try {
    checkRopeScaling(owner, scaling);
  } catch (cause) {
    if (cause instanceof RooflineError) throw new ModelConfigError(cause.message);
    throw cause;
  }
}
