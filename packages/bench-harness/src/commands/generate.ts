import { defineCommand } from '../cli/command.ts';
import { deviceFlag } from '../cli/flags/device-flag.ts';
import { parsePath, parsePositiveNumber, parseWholeNumber, single } from '../cli/option-values.ts';
import { EXIT } from '../errors.ts';

export const generateCommand = defineCommand({
  flags: {
    checkpoint: {
      type: 'string',
      demandOption: true,
      describe: 'Folder of a training, whose newest checkpoint is read, or a checkpoint',
      coerce: parsePath('checkpoint'),
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
      default: '500',
      describe: 'How many are written, the prompt aside',
      coerce: parseWholeNumber('tokens', 1),
    },
    temperature: {
      type: 'string',
      default: '0.8',
      describe: 'How freely tokens are drawn; near 0 the likeliest are',
      coerce: parsePositiveNumber('temperature'),
    },
    'top-k': {
      type: 'string',
      describe: 'Draw from so many of the likeliest tokens',
      coerce: parseWholeNumber('top-k', 1),
    },
    seed: { type: 'string', default: '0', describe: 'Of what is drawn', coerce: parseWholeNumber('seed', 0) },
    ...deviceFlag,
  },
  examples: [
    ['roofline generate --checkpoint runs/a --prompt "The roof "', 'from the newest checkpoint'],
    ['roofline generate --checkpoint runs/a --temperature 0.2 --seed 7', 'less freely, and otherwise'],
  ],
  async run({ checkpoint, prompt, tokens, temperature, seed, device, ...args }) {
    const { watchInterruption } = await import('../cli/interruption.ts');
    const { generateText } = await import('../train/generate-text.ts');
    using watch = watchInterruption();
    const topK = args['top-k'];
    const sampling = { maxNewTokens: tokens, temperature, seed, ...(topK !== undefined && { topK }) };
    const isWhole = await generateText(checkpoint, prompt, sampling, { device, signal: watch.signal });
    return isWhole ? EXIT.ok : EXIT.interrupted;
  },
});
