import { defineCommand, type Flags } from '../../cli/command.ts';
import { executions } from '../../execution/kinds.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { attentionFlags } from '../../cli/flags/attention-flags.ts';
import { sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { attentionDefaults } from './parameters.ts';

const { cuda, cpu } = attentionDefaults;
const defaults = (words: string, onGpu: string, onCpu: string) =>
  `${words}; if not given ${onGpu}, on the CPU ${onCpu}`;

const flags = {
  ...attentionFlags,
  batch: {
    ...attentionFlags.batch,
    describe: defaults('Sequences of a batch', cuda.batches.join(), cpu.batches.join()),
  },
  'head-dim': {
    ...attentionFlags['head-dim'],
    describe: defaults('Head dimension', cuda.headDimensions.join(), cpu.headDimensions.join()),
  },
  sequence: {
    ...attentionFlags.sequence,
    describe: defaults('Queries, and as many keys', cuda.sequences.join(), cpu.sequences.join()),
  },
  execution: {
    ...choicesOf('execution', executions),
    default: 'eager',
    describe: 'Run passes op by op, or as compiled programs',
  },
  steps: {
    type: 'string',
    describe: defaults('Forward and backward passes that count', String(cuda.steps), String(cpu.steps)),
    coerce: parseWholeNumber('steps', 1),
  },
  warmup: {
    type: 'string',
    describe: defaults('Passes before those that count', String(cuda.warmup), String(cpu.warmup)),
    coerce: parseWholeNumber('warmup', 0),
  },
} as const satisfies Flags;

export const attentionCommand = defineCommand({
  flags,
  examples: [
    ['roofline attention', 'plain and flash, forward and backward; on the CPU in a form for laptops'],
    ['roofline attention --dtype float32,bfloat16 --out results/attention', 'both dtypes; again to resume'],
    ['roofline attention --attention flash,tiled --head-dim 64 --sequence 1024', 'the kernels, and ops'],
    ['roofline attention --execution eager,compiled', 'compiled passes, and what compiling took'],
    ['roofline attention --json | jq .rows', 'for other programs'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { attentionBenchmark } = await import('./benchmark.ts');
    const { exitCode } = await runBenchmark(attentionBenchmark, {
      parameters: ({ type }) => {
        const byDevice = attentionDefaults[type];
        return {
          attentions: args.attention,
          batches: args.batch ?? [...byDevice.batches],
          headDimensions: args['head-dim'] ?? [...byDevice.headDimensions],
          sequences: args.sequence ?? [...byDevice.sequences],
          dtypes: args.dtype,
          executions: args.execution,
          warmup: args.warmup ?? byDevice.warmup,
          steps: args.steps ?? byDevice.steps,
          seed: args.seed,
        };
      },
      device: args.device,
      dtypes: args.dtype,
      ...sweepOptions(args, 'attention'),
    });
    return exitCode;
  },
});
