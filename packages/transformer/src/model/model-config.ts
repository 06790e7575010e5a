import { RooflineError, checkOptions, describeValue } from '@roofline/tensor-core';

/** The sizes of a language model. */
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
  /** Attention heads; each sees modelDimension / heads features. */
  readonly heads: number;
  /** The base of the rotary position angles. Default 10000. */
  readonly ropeTheta?: number;
  /** Whether the head's weights are the embeddings', one parameter (Press & Wolf 2017). Default false. */
  readonly tieWordEmbeddings?: boolean;
}

/** Sizes that do not fit together. */
export class ModelConfigError extends RooflineError {
  constructor(message: string) {
    super('MODEL_CONFIG', message);
  }
}

const sizes = [
  'vocabularySize',
  'contextLength',
  'modelDimension',
  'feedForwardDimension',
  'layers',
  'heads',
] as const;

/** What a config may hold. */
export const configNames: readonly (keyof ModelConfig)[] = [...sizes, 'ropeTheta', 'tieWordEmbeddings'];

/**
 * Throws a ModelConfigError, which names `owner`, unless a model of these sizes can be built, and a RooflineError (code OPTION) for names
 * that do not exist.
 */
export function checkConfig(owner: string, config: ModelConfig): void {
  checkOptions(`${owner}: the model config`, config, configNames);
  for (const name of sizes) {
    if (!Number.isInteger(config[name]) || config[name] < 1) {
      throw new ModelConfigError(
        `${owner}: ${name} must be a whole number of one or more, got ${describeValue(config[name])}.`,
      );
    }
  }
  const { modelDimension, heads, ropeTheta, tieWordEmbeddings = false } = config;
  if (modelDimension % (2 * heads) !== 0) {
    throw new ModelConfigError(
      `${owner}: modelDimension ${modelDimension} must be a multiple of 2 · heads = ${2 * heads}: rotary positions turn pairs ` +
        'of features inside each head.',
    );
  }
  const isTheta = typeof ropeTheta === 'number' && ropeTheta > 0 && ropeTheta < Infinity;
  if (ropeTheta !== undefined && !isTheta) {
    throw new ModelConfigError(
      `${owner}: ropeTheta must be positive and finite, got ${describeValue(ropeTheta)}.`,
    );
  }
  if (typeof tieWordEmbeddings !== 'boolean') {
    throw new ModelConfigError(
      `${owner}: tieWordEmbeddings must be true or false, got ${describeValue(tieWordEmbeddings)}.`,
    );
  }
}
