import type { InferredOptionTypes } from 'yargs';
import { defineCommand, type Flags } from '../../cli/command.ts';
import { attentionFlags } from '../../cli/flags/attention-flags.ts';
import { choicesOf, dtypeChoices, peerChoice } from '../../cli/flags/choices.ts';
import { sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parsePositiveNumber, parseWholeNumber, parseWholeNumbers } from '../../cli/option-values.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { masks } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { UsageError } from '../../errors.ts';
import { dtypes } from '../../measuring/ceilings.ts';
import type { DeviceDescription } from '../../records/environment.ts';
import { findPeer } from '../../peer/peer-setting.ts';
import { flashDefaults, leaderboard, type FlashParameters } from './parameters.ts';

const { cuda, cpu } = flashDefaults;

const flags = {
  ...attentionFlags,
  batch: { ...attentionFlags.batch, describe: 'Sequences of a batch; 1 if not given' },
  heads: { type: 'string', describe: 'Heads; 1 if not given', coerce: parseWholeNumbers('heads', 1) },
  'head-dim': {
    ...attentionFlags['head-dim'],
    describe: `Head dimension; ${cuda.headDimensions.join()}, on the CPU ${cpu.headDimensions.join()}`,
  },
  sequence: {
    ...attentionFlags.sequence,
    describe: `Queries, and as many keys; powers of two from 128 to 65536, on the CPU ${cpu.sequences.join()}`,
  },
  dtype: {
    ...dtypeChoices(dtypes),
    describe: 'Of operands and results; bfloat16,float32 if not given',
  },
  mask: {
    ...choicesOf('mask', masks),
    describe: 'Keys that a query sees: those up to its own place, or all; causal if not given',
  },
  pass: {
    ...choicesOf('pass', passes),
    describe: 'What is timed; all if not given',
  },
  leaderboard: {
    type: 'boolean',
    default: false,
    describe:
      'The one case of public leaderboards: batch 1, 16 heads, d 64, sequence 16384, bfloat16, both passes together',
  },
  'warmup-ms': {
    type: 'string',
    default: '25',
    describe: 'Milliseconds of calls before those that count, in each turn',
    coerce: parsePositiveNumber('warmup-ms'),
  },
  'repeat-ms': {
    type: 'string',
    default: '100',
    describe: 'Milliseconds of calls that count, of each attention and pass',
    coerce: parsePositiveNumber('repeat-ms'),
  },
  rounds: {
    type: 'string',
    default: '3',
    describe: 'Turns that the attentions take',
    coerce: parseWholeNumber('rounds', 1),
  },
  peer: {
    ...peerChoice,
    describe: 'Time the attentions of PyTorch in turn with ours (Python by ROOFLINE_PYTHON)',
  },
  'peer-attention': {
    ...choicesOf('peer-attention', torchAttentionNames),
    describe: 'Those of PyTorch; all if not given',
  },
} as const satisfies Flags;

type Arguments = InferredOptionTypes<typeof flags>;

export const flashCommand = defineCommand({
  flags,
  examples: [
    ['roofline flash', 'flash and plain attention in turn; on the CPU in a form for laptops'],
    [
      'roofline flash --peer torch --out results/flash',
      "PyTorch's attentions in the same run; again to resume",
    ],
    ['roofline flash --heads 16 --head-dim 128 --sequence 16384 --dtype bfloat16', 'one shape'],
    ['roofline flash --leaderboard --peer torch', 'the case of public leaderboards'],
    ['roofline flash --attention flash,tiled,plain --json | jq .rows', 'for other programs'],
  ],
  async run(args) {
    checkFlags(args);
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { flashBenchmark } = await import('./benchmark.ts');
    const peer = args.peer === undefined ? null : await findPeer();
    const { exitCode } = await runBenchmark(flashBenchmark, {
      parameters: ({ type }) => ({
        attentions: args.attention,
        ...sweptOf(args, type),
        warmupMs: args['warmup-ms'],
        repeatMs: args['repeat-ms'],
        rounds: args.rounds,
        seed: args.seed,
        peer,
        peerAttentions: args['peer-attention'] ?? torchAttentionNames,
      }),
      device: args.device,
      dtypes: args.leaderboard ? leaderboard.dtypes : dtypesOf(args),
      ...sweepOptions(args, 'flash'),
    });
    return exitCode;
  },
});

type Swept = Pick<
  FlashParameters,
  'passes' | 'batches' | 'heads' | 'headDimensions' | 'sequences' | 'dtypes' | 'masks'
>;

function sweptOf(args: Arguments, type: DeviceDescription['type']): Swept {
  if (args.leaderboard) {
    return {
      passes: [...leaderboard.passes],
      batches: [...leaderboard.batches],
      heads: [...leaderboard.heads],
      headDimensions: [...leaderboard.headDimensions],
      sequences: [...leaderboard.sequences],
      dtypes: [...leaderboard.dtypes],
      masks: [...leaderboard.masks],
    };
  }
  const byDevice = flashDefaults[type];
  return {
    passes: args.pass ?? [...passes],
    batches: args.batch ?? [1],
    heads: args.heads ?? [1],
    headDimensions: args['head-dim'] ?? [...byDevice.headDimensions],
    sequences: args.sequence ?? [...byDevice.sequences],
    dtypes: dtypesOf(args),
    masks: args.mask ?? ['causal'],
  };
}

function dtypesOf({ dtype }: Arguments): FlashParameters['dtypes'] {
  return dtype ?? ['bfloat16', 'float32'];
}

/** Throws UsageError for flags that exclude each other. */
function checkFlags(args: Arguments): void {
  const shapeFlags = ['batch', 'heads', 'head-dim', 'sequence', 'dtype', 'mask', 'pass'] as const;
  const given = shapeFlags.find((name) => args[name] !== undefined);
  if (args.leaderboard && given !== undefined) {
    throw new UsageError(`--leaderboard is one case: leave out --${given}.`);
  }
  if (args.peer === undefined && args['peer-attention'] !== undefined) {
    throw new UsageError('--peer-attention is that of a peer: add --peer torch.');
  }
}
