import { defineCommand, type Flags } from '../../cli/command.ts';
import { choicesOf, peerChoice } from '../../cli/flags/choices.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweptBy, sweptFlagsOf, type GivenArguments } from '../../cli/flags/parameter-flags.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parsePositiveNumber, parseWholeNumber } from '../../cli/option-values.ts';
import { showWhile } from '../../cli/show-while.ts';
import { attentionKinds } from '../../attention/kinds.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import { shapeParameters } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { UsageError } from '../../errors.ts';
import { findPeer } from '../../peer/peer-setting.ts';
import { flashDefaults, leaderboard } from './parameters.ts';

const { cuda, cpu } = flashDefaults;
const shapeFlags: Flags = sweptFlagsOf(shapeParameters);

const flags = {
  attention: {
    ...choicesOf('attention', attentionKinds),
    default: 'plain,flash',
    describe: 'In separate ops, by the kernels of @roofline/flash-attn, or its algorithm in ops',
  },
  ...shapeFlags,
  batch: { ...shapeFlags['batch']!, describe: 'Sequences of a batch; 1 if not given' },
  'head-dim': {
    ...shapeFlags['head-dim']!,
    describe: `Head dimension; ${cuda.headDimension.join()}, on the CPU ${cpu.headDimension.join()}`,
  },
  sequence: {
    ...shapeFlags['sequence']!,
    describe: `Queries, and as many keys; powers of two from 128 to 65536, on the CPU ${cpu.sequence.join()}`,
  },
  dtype: { ...shapeFlags['dtype']!, describe: 'Of operands and results; bfloat16,float32 if not given' },
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
  ...deviceFlag,
  seed: {
    type: 'string',
    default: '0',
    describe: 'Seed of the operands',
    coerce: parseWholeNumber('seed', 0),
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
  ...sweepFlags,
} as const;

/** What is usual, where nothing is named. */
const usual = { batch: [1], heads: [1], dtype: ['bfloat16', 'float32'] } as const;

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
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { flashBenchmark } = await import('./benchmark.ts');
    const peer = args.peer === undefined ? null : await showWhile('Looking for PyTorch', findPeer);
    const shape = args.leaderboard
      ? leaderboard
      : { passes: args.pass ?? passes, ...usual, ...sweptBy(shapeParameters, args) };
    const { exitCode } = await runBenchmark(flashBenchmark, {
      parameters: ({ type }) => ({
        ...{ ...flashDefaults[type], ...shape, attentions: args.attention, peer },
        ...{ warmupMs: args['warmup-ms'], repeatMs: args['repeat-ms'] },
        ...{ rounds: args.rounds, seed: args.seed },
        peerAttentions: args['peer-attention'] ?? torchAttentionNames,
      }),
      device: args.device,
      dtypes: shape.dtype,
      ...sweepOptions(args, 'flash'),
    });
    return exitCode;
  },
});

/** Throws UsageError for flags that exclude each other. */
function checkFlags(args: GivenArguments): void {
  const given = [...Object.keys(shapeFlags), 'pass'].find((name) => args[name] !== undefined);
  if (args['leaderboard'] && given !== undefined) {
    throw new UsageError(`--leaderboard is one case: leave out --${given}.`);
  }
  if (args['peer'] === undefined && args['peer-attention'] !== undefined) {
    throw new UsageError('--peer-attention is that of a peer: add --peer torch.');
  }
}
