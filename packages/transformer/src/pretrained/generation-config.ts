import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { GenerateOptions } from '../generation/generate.ts';
import { ConfigFields } from './config-fields.ts';
import { readObject } from './read-config.ts';

/** What a generation_config.json says of how a model is to generate. */
export type GenerationDefaults = Pick<
  GenerateOptions,
  'temperature' | 'topK' | 'topP' | 'maxNewTokens' | 'stopToken'
>;

/**
 * Options of `generate` by the generation_config.json of a folder, or by what config.json says of the last token; none without.
 * Greedy unless it asks for samples, as in `transformers`. Throws a PretrainedConfigError for a file that is no such config.
 */
export function readGenerationConfig(folder: string): GenerationDefaults {
  const path = join(folder, 'generation_config.json');
  if (!existsSync(path)) return stopOf(fieldsOf(join(folder, 'config.json')));
  const fields = fieldsOf(path);
  const samples = fields.flag('do_sample', false);
  const length = fields.value('max_new_tokens') === undefined ? undefined : fields.count('max_new_tokens');
  return {
    ...(samples ? samplingOf(fields) : { temperature: 0 }),
    ...(length === undefined ? {} : { maxNewTokens: length }),
    ...stopOf(fields),
  };
}

const fieldsOf = (path: string) => new ConfigFields(path, readObject(path));

/** `transformers` draws from the 50 likeliest where a config does not say; 0 is all of them. */
function samplingOf(fields: ConfigFields): GenerationDefaults {
  const topK = fields.number('top_k', 50);
  return {
    temperature: fields.number('temperature', 1),
    ...(topK > 0 ? { topK } : {}),
    topP: fields.number('top_p', 1),
  };
}

function stopOf(fields: ConfigFields): GenerationDefaults {
  const stop = fields.value('eos_token_id') as number | readonly number[] | undefined;
  return stop === undefined ? {} : { stopToken: stop };
}
