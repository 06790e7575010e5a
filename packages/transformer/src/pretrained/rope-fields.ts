import type { RopeScaling } from '../layers/rope-scaling.ts';
import type { ConfigFields } from './config-fields.ts';

/** What a config says of rotary positions. */
export interface RopeOfConfig {
  readonly ropeTheta: number;
  readonly ropeScaling?: RopeScaling;
}

/** From `rope_parameters` of transformers 5, or from `rope_theta` and `rope_scaling` of those before. */
export function ropeOfConfig(config: ConfigFields, contextLength: number): RopeOfConfig {
  const parameters = config.object('rope_parameters');
  const older = config.object('rope_scaling');
  const theta = config.number('rope_theta', 10_000);
  config.mustBe('partial_rotary_factor', [1], 'all features of a head are turned');
  const scaling = scalingOf(parameters, contextLength) ?? scalingOf(older, contextLength);
  const ropeTheta = parameters.number('rope_theta', older.number('rope_theta', theta));
  return scaling === undefined ? { ropeTheta } : { ropeTheta, ropeScaling: scaling };
}

function scalingOf(fields: ConfigFields, contextLength: number): RopeScaling | undefined {
  const legacy = fields.text('type', 'default');
  const type = fields.text('rope_type', legacy);
  fields.mustBe('partial_rotary_factor', [1], 'all features of a head are turned');
  if (type === 'default') return undefined;
  const factor = fields.number('factor');
  if (type === 'linear') return { type, factor };
  const originalContextLength = fields.number('original_max_position_embeddings', contextLength);
  if (type === 'llama3') {
    return {
      ...{ type, factor, originalContextLength },
      lowFrequencyFactor: fields.number('low_freq_factor'),
      highFrequencyFactor: fields.number('high_freq_factor'),
    };
  }
  if (type === 'yarn') return yarnOf(fields, factor, originalContextLength);
  const name = fields.value('rope_type') === undefined ? 'type' : 'rope_type';
  throw fields.refusal(name, 'is not supported: default, linear, llama3 and yarn are');
}

function yarnOf(fields: ConfigFields, factor: number, originalContextLength: number): RopeScaling {
  const attentionFactor = fields.value('attention_factor') as number | undefined;
  const [numerator, denominator] = [fields.number('mscale', 0), fields.number('mscale_all_dim', 0)];
  const amplitude = (scale: number) => (factor <= 1 ? 1 : 0.1 * scale * Math.log(factor) + 1);
  const byScales =
    numerator > 0 && denominator > 0 ? amplitude(numerator) / amplitude(denominator) : undefined;
  const given = attentionFactor ?? byScales;
  return {
    ...{ type: 'yarn', factor, originalContextLength },
    fastTurns: fields.number('beta_fast', 32),
    slowTurns: fields.number('beta_slow', 1),
    ...(given === undefined ? {} : { attentionFactor: given }),
    wholePairs: fields.flag('truncate', true),
  };
}

/** `rope_parameters` of transformers 5. */
export function ropeParameters(ropeTheta: number, scaling: RopeScaling | undefined): Record<string, unknown> {
  if (scaling === undefined) return { rope_type: 'default', rope_theta: ropeTheta };
  const base = { rope_type: scaling.type, rope_theta: ropeTheta, factor: scaling.factor };
  if (scaling.type === 'linear') return base;
  const original = { original_max_position_embeddings: scaling.originalContextLength };
  if (scaling.type === 'llama3') {
    return {
      ...{ ...base, ...original },
      low_freq_factor: scaling.lowFrequencyFactor,
      high_freq_factor: scaling.highFrequencyFactor,
    };
  }
  const { fastTurns = 32, slowTurns = 1, attentionFactor, wholePairs = true } = scaling;
  return {
    ...{ ...base, ...original, beta_fast: fastTurns, beta_slow: slowTurns, truncate: wholePairs },
    ...(attentionFactor === undefined ? {} : { attention_factor: attentionFactor }),
  };
}
