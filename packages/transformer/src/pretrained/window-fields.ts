import type { ModelConfig } from '../model/model-config.ts';
import type { ConfigFields } from './config-fields.ts';
import type { ModelType } from './model-types.ts';

const kinds = ['full_attention', 'sliding_attention'] as const;
/** What `transformers` takes where a config of a model with windows has none. */
const usual = { window: 4096, fullLayers: 28 } as const;

/** How far the tokens of a model see, and in which layers all the way. */
export function windowOfConfig(
  given: ConfigFields,
  modelType: Exclude<ModelType, 'gpt2'>,
): Pick<ModelConfig, 'slidingWindow' | 'fullAttentionLayers'> {
  const layers = given.count('num_hidden_layers');
  const types = layerTypes(given, layers);
  // Always read, so that it is not reported as a field without effect.
  const fullLayers = given.has('max_window_layers') ? given.value('max_window_layers') : usual.fullLayers;
  const isOn = modelType === 'mistral' || given.flag('use_sliding_window', false);
  const isOff = given.has('sliding_window') && given.value('sliding_window') === undefined;
  if (modelType === 'llama' || !isOn || isOff) {
    if (types?.includes('sliding_attention'))
      throw given.refusal('layer_types', 'is not supported: the config has no window for sliding_attention');
    return {};
  }
  const slidingWindow = given.count('sliding_window', usual.window);
  // Mistral's layers are all alike, whatever their types.
  if (modelType === 'mistral') return { slidingWindow };
  if (typeof fullLayers !== 'number') throw given.refusal('max_window_layers', 'is no number of layers');
  const isFull = (layer: number) => (types === null ? layer < fullLayers : types[layer] === 'full_attention');
  const full = Array.from({ length: layers }, (_, layer) => layer).filter(isFull);
  if (full.length === layers) return {};
  return full.length === 0 ? { slidingWindow } : { slidingWindow, fullAttentionLayers: full };
}

/** Null where a config does not say. */
function layerTypes(given: ConfigFields, layers: number): readonly string[] | null {
  const types = given.value('layer_types');
  if (types === undefined) return null;
  if (!Array.isArray(types)) throw given.refusal('layer_types', 'must be a list');
  const odd = types.find((type) => !kinds.includes(type as (typeof kinds)[number]));
  if (odd !== undefined)
    throw given.refusal(
      'layer_types',
      `is not supported: layers are ${kinds.join(' or ')}, not ${String(odd)}`,
    );
  if (types.length !== layers) throw given.refusal('layer_types', `must have as many as layers, ${layers}`);
  return types as string[];
}

/** The fields of a config of Mistral, or of Qwen; none for a Llama. */
export function windowFields(
  modelType: ModelType,
  { slidingWindow, fullAttentionLayers: full = [], layers }: ModelConfig,
): Record<string, unknown> {
  if (modelType === 'llama' || modelType === 'gpt2') return {};
  if (modelType === 'mistral') return { sliding_window: slidingWindow ?? null };
  if (slidingWindow === undefined) return { use_sliding_window: false };
  return {
    ...{ use_sliding_window: true, sliding_window: slidingWindow },
    layer_types: Array.from({ length: layers }, (_, layer) => kinds[full.includes(layer) ? 0 : 1]),
    // For versions before layer_types, where the first layers are the full ones.
    max_window_layers: full.length,
  };
}
