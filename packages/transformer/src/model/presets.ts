import { checkOptions, checkText } from '@roofline/tensor-core';
import { type ModelConfig, ModelConfigError, checkConfig, configNames } from './model-config.ts';

/** The names of all presets. */
export const presetNames = ['tiny', 'small', 'medium', 'large', 'xl', '2.7b', '2.35b', '8b', '10b'] as const;

/** The name of a preset: `small`, `2.7b` and so on. */
export type PresetName = (typeof presetNames)[number];

function preset(
  modelDimension: number,
  feedForwardDimension: number,
  layers: number,
  heads: number,
  vocabularySize = 10_000,
): ModelConfig {
  return { vocabularySize, contextLength: 256, modelDimension, feedForwardDimension, layers, heads };
}

/** Models by name: GPT-2's four sizes and larger ones with RoPE and SwiGLU, and `tiny` for laptops. */
export const presets: Readonly<Record<PresetName, ModelConfig>> = {
  tiny: preset(128, 512, 4, 4),
  small: preset(768, 3072, 12, 12),
  medium: preset(1024, 4096, 24, 16),
  large: preset(1280, 5120, 36, 20),
  xl: preset(1600, 6400, 48, 25),
  '2.7b': preset(2560, 10_240, 32, 32),
  '2.35b': preset(3200, 25_600, 8, 4),
  '8b': preset(4096, 11_008, 34, 32, 151_936),
  '10b': preset(4608, 12_288, 50, 36),
};

/** The preset of that name, with sizes of your own in place of its. Throws a ModelConfigError for other names and
 * for sizes that do not fit together. */
export function presetConfig(name: string, overrides: Partial<ModelConfig> = {}): ModelConfig {
  checkText('presetConfig', 'the name', name);
  checkOptions('presetConfig', overrides, configNames);
  if (!Object.hasOwn(presets, name)) {
    throw new ModelConfigError(
      `presetConfig: there is no model size "${name}"; take one of ${presetNames.join(', ')}.`,
    );
  }
  const given = Object.entries(overrides).filter(([, value]) => value !== undefined);
  const config: ModelConfig = { ...presets[name as PresetName], ...Object.fromEntries(given) };
  checkConfig('presetConfig', config);
  return config;
}
