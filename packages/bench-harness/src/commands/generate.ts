import type { Device } from '@roofline/tensor-core';
import { defineCommand } from '../cli/command.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import {
  parseChoice,
  parseNumber,
  parsePath,
  parsePositiveNumber,
  parseWholeNumber,
  single,
} from '../cli/option-values.ts';
import { EXIT, UsageError } from '../errors.ts';
import { dtypes } from '../measuring/ceilings.ts';

export const generateCommand = defineCommand({
  flags: {
    checkpoint: {
      type: 'string',
      describe: 'Folder of a training, whose newest checkpoint is read, or a checkpoint',
      coerce: parsePath('checkpoint'),
    },
    model: {
      type: 'string',
      describe: 'Folder of a model of Hugging Face, with its tokenizer, instead',
      coerce: parsePath('model'),
    },
    tokenizer: {
      type: 'string',
      describe: "In place of the model's own: 'bytes', a folder, a tokenizer.json, or tiktoken's ranks",
      coerce: parsePath('tokenizer'),
    },
    prompt: {
      type: 'string',
      default: '\n',
      defaultDescription: 'a new line',
      describe: 'What the text begins with',
      coerce: (given: string | readonly string[]) => single('prompt', given),
    },
    tokens: {
      type: 'string',
      defaultDescription: '500, or what the folder of --model says',
      describe: 'How many are written at most, the prompt aside',
      coerce: parseWholeNumber('tokens', 1),
    },
    temperature: {
      type: 'string',
      defaultDescription: '0.8; of --model as its folder says, or the likeliest',
      describe: 'How freely tokens are drawn; near 0 the likeliest are',
      coerce: parsePositiveNumber('temperature'),
    },
    'top-k': {
      type: 'string',
      describe: 'Draw from so many of the likeliest tokens',
      coerce: parseWholeNumber('top-k', 1),
    },
    'top-p': {
      type: 'string',
      describe: 'Draw from the likeliest tokens that have so much of the probability together',
      coerce: parseNumber('top-p', 'a share above 0 and at most 1', (value) => value > 0 && value <= 1),
    },
    dtype: {
      type: 'string',
      values: dtypes,
      describe: 'Of the weights of --model',
      defaultDescription: 'bfloat16 on a GPU, else float32',
      coerce: (given: string | readonly string[]) => parseChoice('dtype', single('dtype', given), dtypes),
    },
    seed: { type: 'string', default: '0', describe: 'Of what is drawn', coerce: parseWholeNumber('seed', 0) },
    ...deviceFlag,
  },
  examples: [
    ['roofline generate --checkpoint runs/a --prompt "The roof "', 'from the newest checkpoint'],
    ['roofline generate --checkpoint runs/a --temperature 0.2 --seed 7', 'less freely, and otherwise'],
    ['roofline generate --model models/qwen --prompt "The roof "', "a model of Hugging Face's"],
  ],
  async run({ checkpoint, model: folder, prompt, temperature, seed, device: spec, tokenizer, ...args }) {
    if ((checkpoint === undefined) === (folder === undefined))
      throw new UsageError(
        'Either --checkpoint or --model is needed: a training, or a folder of Hugging Face.',
      );
    if (checkpoint !== undefined && args.dtype !== undefined)
      throw new UsageError('--dtype is of --model: a training has its own.');
    const { watchInterruption } = await import('../cli/interruption.ts');
    const { openFolder, openTrained } = await import('../train/open-writer.ts');
    const { generateText } = await import('../train/generate-text.ts');
    using watch = watchInterruption();
    const { signal } = watch;
    const openDevice = () => deviceOf(spec, signal);
    const writer =
      folder === undefined
        ? await openTrained(checkpoint!, { openDevice, tokenizer })
        : await openFolder(folder, { openDevice, tokenizer, dtype: args.dtype });
    if (writer === null) return EXIT.interrupted;
    using _ = writer.model;
    const given = { temperature, topK: args['top-k'], topP: args['top-p'], maxNewTokens: args.tokens, seed };
    const isWhole = await generateText(writer, prompt, given, signal);
    return isWhole ? EXIT.ok : EXIT.interrupted;
  },
});

async function deviceOf(spec: string, signal: AbortSignal): Promise<Device | null> {
  const { openDevice } = await import('../device/prepare-device.ts');
  const { device } = await import('@roofline/tensor-core');
  const found = await openDevice(spec, { signal });
  return found && device(found.label as `cuda:${number}`);
}
