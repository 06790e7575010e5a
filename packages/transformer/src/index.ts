// What console.log prints of a module.
import './module/print-module.ts';

export type { AttentionBias } from './layers/attention-bias.ts';
export { type AttentionOptions, CausalSelfAttention, plainAttention } from './layers/attention.ts';
export type { AttentionFunction, AttentionSettings } from './layers/attention-function.ts';
export type { FeedForward, Norm } from './layers/block-kinds.ts';
export { type BlockOptions, TransformerBlock } from './layers/block.ts';
export { type ByteWindowsOptions, byteWindows } from './data/byte-windows.ts';
export { type LoadedCheckpoint, loadCheckpoint, saveCheckpoint } from './checkpoint/checkpoint.ts';
export { type CostOptions, type ModelCost, costOf } from './model/cost.ts';
export { Embedding, type EmbeddingOptions } from './layers/embedding.ts';
export {
  type BatchGenerateOptions,
  type GenerateOptions,
  generate,
  generateBatch,
  generateTokens,
} from './generation/generate.ts';
export { CacheStep } from './generation/cache-step.ts';
export type { Padding } from './generation/padding.ts';
export {
  type AttentionCache,
  KeyValueCache,
  type KeyValueCacheOptions,
  type KeysAndValues,
  LayerCache,
} from './generation/key-value-cache.ts';
export { GeluNetwork, type GeluNetworkOptions } from './layers/gelu-network.ts';
export { LayerNorm } from './layers/layer-norm.ts';
export { Linear, type LinearOptions } from './layers/linear.ts';
export {
  type FitDType,
  type FitOptions,
  type FitStep,
  type ParallelTraining,
  type TrainingData,
  type TrainingOptimizer,
  type TrainingScaler,
  fit,
  fitDTypes,
} from './training/fit.ts';
export {
  type DecayGroup,
  type ParameterGroupsOptions,
  parameterGroups,
} from './training/parameter-groups.ts';
export {
  type SavableData,
  type SavableOptimizer,
  type SavableScaler,
  type SavableState,
  type SavedTraining,
  TrainingFileError,
  type TrainingParts,
  type TrainingPlace,
  describeTraining,
  loadTraining,
  saveTraining,
} from './training/training-file.ts';
export {
  type RankTrainingParts,
  type SavableShardedOptimizer,
  loadTrainingOnRanks,
  saveTrainingOnRanks,
} from './training/training-on-ranks.ts';
export type { GroupedPartOptimizer, ShardedTraining } from './training/sharded-training.ts';
export type { GatheringRanks } from './checkpoint/together.ts';
export {
  type LanguageModelLossOptions,
  type LogitsMode,
  languageModelLoss,
  logitsModes,
} from './training/loss.ts';
export { type RecomputePolicy, recomputePolicies } from './model/recompute.ts';
export { type ModelConfig, ModelConfigError } from './model/model-config.ts';
export { type AnyModule, Module, type NamedParametersOptions } from './module/module.ts';
export { type ParameterOptions } from './module/parameter.ts';
export { overfitExample } from './training/overfit-example.ts';
export {
  type ParameterCount,
  countParameters,
  countParametersByModule,
  parameterShapes,
} from './model/parameter-count.ts';
export { type PresetName, presetConfig, presetNames, presets } from './model/presets.ts';
export { PositionEmbedding } from './layers/position-embedding.ts';
export { PretrainedConfigError } from './pretrained/config-fields.ts';
export type { GenerationDefaults } from './pretrained/generation-config.ts';
export {
  type LoadPretrainedOptions,
  type PretrainedModel,
  loadPretrained,
} from './pretrained/load-pretrained.ts';
export {
  type PretrainedConfig,
  type PretrainedConfigOptions,
  readPretrainedConfig,
} from './pretrained/read-config.ts';
export { type ModelType, modelTypes } from './pretrained/model-types.ts';
export { type SavePretrainedOptions, savePretrained } from './pretrained/save-pretrained.ts';
export { RMSNorm } from './layers/rms-norm.ts';
export { RotaryEmbedding, type RotaryOptions } from './layers/rope.ts';
export type { RopeScaling } from './layers/rope-scaling.ts';
export {
  type LoadShardedOptions,
  type SaveShardedOptions,
  type ShardedParameters,
  loadSharded,
  saveSharded,
  saveWhole,
} from './checkpoint/sharded-checkpoint.ts';
export type { PartOptimizer } from './checkpoint/sharded-state.ts';
export { SafetensorsFile, type TensorSource, writeSafetensors } from './checkpoint/safetensors.ts';
export {
  type SafetensorsEntry,
  SafetensorsError,
  type SafetensorsHeader,
  type TensorSpecification,
} from './checkpoint/safetensors-header.ts';
export { type SamplingOptions, sampleToken } from './generation/sampling.ts';
export { type ModuleSummary, summary } from './module/summary.ts';
export { StateError, type StateMatch, type StateMatchOptions } from './module/state.ts';
export { SwiGLU, type SwiGLUOptions } from './layers/swiglu.ts';
export { type NamedTensors, loadTensors, saveTensors } from './checkpoint/tensor-file.ts';
export { TokenFile, isTokenFile } from './data/token-file.ts';
export {
  type TokenDType,
  TokenFileError,
  type TokenFileHeader,
  type TokenFileMetadata,
} from './data/token-file-header.ts';
export { TokenLoader, type TokenLoaderOptions, type TokenLoaderState } from './data/token-loader.ts';
export { type TokenSource, byteTokens } from './data/token-source.ts';
export type { TokenWindows } from './data/token-windows.ts';
export { type HeadLoss, TransformerLM, type TransformerOptions } from './model/transformer-lm.ts';
export { TokenFileWriter, type TokenFileWriterOptions } from './data/token-file-writer.ts';
export { type WriteTokensOptions, writeTokens } from './data/write-tokens.ts';
export { deferWeights } from './module/building.ts';
