export {
  type AttentionFunction,
  type AttentionOptions,
  type AttentionSettings,
  CausalSelfAttention,
  plainAttention,
} from './attention.ts';
export { type BlockOptions, TransformerBlock } from './block.ts';
export { type ByteWindowsOptions, byteWindows } from './byte-windows.ts';
export { type LoadedCheckpoint, loadCheckpoint, saveCheckpoint } from './checkpoint.ts';
export { type CostOptions, type ModelCost, costOf } from './cost.ts';
export { Embedding, type EmbeddingOptions } from './embedding.ts';
export { type GenerateOptions, generate, generateTokens } from './generate.ts';
export { KeyValueCache, type KeysAndValues, LayerCache } from './key-value-cache.ts';
export { Linear, type LinearOptions } from './linear.ts';
export { languageModelLoss } from './loss.ts';
export { type ModelConfig, ModelConfigError } from './model-config.ts';
export { type AnyModule, Module, type NamedParametersOptions } from './module.ts';
export { type ParameterOptions } from './parameter.ts';
export { overfitExample } from './overfit-example.ts';
export {
  type ParameterCount,
  countParameters,
  countParametersByModule,
  parameterShapes,
} from './parameter-count.ts';
export { type PresetName, presetConfig, presetNames, presets } from './presets.ts';
export { RMSNorm } from './rms-norm.ts';
export { RotaryEmbedding, type RotaryOptions } from './rope.ts';
export { SafetensorsFile, type TensorSource, writeSafetensors } from './safetensors.ts';
export {
  type SafetensorsEntry,
  SafetensorsError,
  type SafetensorsHeader,
  type TensorSpecification,
} from './safetensors-header.ts';
export { type SamplingOptions, sampleToken } from './sampling.ts';
export { StateError, type StateMatch, type StateMatchOptions } from './state.ts';
export { SwiGLU } from './swiglu.ts';
export { type NamedTensors, loadTensors, saveTensors } from './tensor-file.ts';
export { TransformerLM, type TransformerOptions } from './transformer-lm.ts';
