import { type DType, byteSize, checkCount, checkDType, checkOptions } from '@roofline/tensor-core';
import { type ModelConfig, checkConfig, wholeConfig } from './model-config.ts';
import { countParametersByModule, productParametersOfLayer } from './parameter-count.ts';

/** Options of `costOf`. */
export interface CostOptions {
  /** Sequences. */
  readonly batch: number;
  /** Tokens of a sequence. Default the model's context length. */
  readonly context?: number;
  /** The dtype of parameters and activations. Default float32. */
  readonly dtype?: DType;
}

/** What one training step of a model must do and hold. */
export interface ModelCost {
  /** Floating-point operations of matrix products; all else is below a percent of them. */
  readonly forwardFlops: number;
  readonly backwardFlops: number;
  readonly stepFlops: number;
  readonly parameterBytes: number;
  readonly gradientBytes: number;
  /** AdamW's two float32 moments. */
  readonly optimizerBytes: number;
  /** What the forward pass saves for the backward pass, with plain attention. */
  readonly activationBytes: number;
}

/**
 * The cost of a step (Kaplan et al. 2020, section 2.1): a product with a weight takes two FLOPs a token and
 * parameter; plain attention takes 4·B·T²·(heads · features of a head) more in each layer, masked or not; backward is twice forward.
 * Throws a ModelConfigError for sizes that do not fit together.
 */
export function costOf(config: ModelConfig, options: CostOptions): ModelCost {
  checkConfig('costOf', config);
  checkOptions('costOf', options, ['batch', 'context', 'dtype']);
  const { batch, context = config.contextLength, dtype = 'float32' } = options;
  checkCount('costOf', 'batch', batch, 1);
  checkCount('costOf', 'context', context, 1);
  checkDType('costOf', dtype);
  const { total } = countParametersByModule(config);
  // The head is a product with the embeddings where it has no weights of its own.
  const ofLayers = config.layers * productParametersOfLayer(config);
  const matmulParameters = ofLayers + config.vocabularySize * config.modelDimension;
  const { heads, headDimension } = wholeConfig(config);
  const attentionFlops = 4 * batch * context ** 2 * heads * headDimension * config.layers;
  const forwardFlops = 2 * batch * context * matmulParameters + attentionFlops;
  return {
    forwardFlops,
    backwardFlops: 2 * forwardFlops,
    stepFlops: 3 * forwardFlops,
    parameterBytes: total * byteSize(dtype),
    gradientBytes: total * byteSize(dtype),
    optimizerBytes: 2 * total * byteSize('float32'),
    activationBytes: savedElements(config, batch, context) * byteSize(dtype),
  };
}

/**
 * A layer saves for each token: the input of both norms and their outputs (4 d), the turned queries and keys, the values and the
 * merged heads, queries and keys before their norms where they have any, the branches of the feed-forward network and what comes of
 * them, and each head's attention weights. The end saves the last norm's input and output, and the logits.
 */
function savedElements(config: ModelConfig, batch: number, context: number): number {
  const whole = wholeConfig(config);
  const { modelDimension, feedForwardDimension, layers, heads, vocabularySize, headDimension } = whole;
  const [queries, keys] = [heads * headDimension, whole.keyValueHeads * headDimension];
  const attended = 2 * queries + 2 * keys + (whole.queryKeyNorm ? queries + keys : 0) + heads * context;
  const network = (whole.feedForward === 'swiglu' ? 3 : 2) * feedForwardDimension;
  const perToken = 4 * modelDimension + attended + network;
  return batch * context * (layers * perToken + 2 * modelDimension + vocabularySize);
}
