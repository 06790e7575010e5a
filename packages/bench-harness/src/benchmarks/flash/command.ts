import { shapeParameters } from '../../attention/shape.ts';
import { passes } from '../../attention/work.ts';
import { torchAttentionNames } from '../../attention/peer-kinds.ts';
import type { Flags } from '../../cli/command.ts';
import { askedPeer, peerChoice } from '../../cli/flags/peer-flag.ts';
import {
  settingFlagsOf,
  settingsBy,
  sweptBy,
  sweptFlagsOf,
  type GivenArguments,
} from '../../cli/flags/parameter-flags.ts';
import { parseWholeNumbers } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { flashDefaults, flashSettingParameters, leaderboard } from './parameters.ts';

const { cuda, cpu } = flashDefaults;
const shapeFlags: Flags = sweptFlagsOf(shapeParameters);
/** What is usual, where nothing is named. */
const usual = { batch: [1], heads: [1], dtype: ['bfloat16', 'float32'] } as const;

const settingFlags = settingFlagsOf(flashSettingParameters);
/** Those of them that tiles are timed by. */
const tileFlags: readonly string[] = ['warmup-ms', 'repeat-ms', 'seed'];

export const flashCommand = benchmarkCommand(({ tile }) => (tile === undefined ? 'flash' : 'tiles'), {
  flags: {
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
    leaderboard: {
      type: 'boolean',
      default: false,
      describe:
        'The one case of public leaderboards: batch 1, 16 heads, d 64, sequence 16384, bfloat16, both passes together',
    },
    tile: {
      type: 'string',
      describe: 'Forward by each pair of these numbers of queries and keys of a tile: 16,32,64,128,256',
      coerce: parseWholeNumbers('tile', 1),
    },
    ...settingFlags,
    peer: {
      ...peerChoice,
      describe: 'Time the attentions of PyTorch in turn with ours (Python by ROOFLINE_PYTHON)',
    },
  },
  examples: [
    ['roofline flash', 'flash and plain attention in turn; on the CPU in a form for laptops'],
    [
      'roofline flash --peer torch --out results/flash',
      "PyTorch's attentions in the same run; again to resume",
    ],
    ['roofline flash --heads 16 --head-dim 128 --sequence 16384 --dtype bfloat16', 'one shape'],
    ['roofline flash --leaderboard --peer torch', 'the case of public leaderboards'],
    [
      'roofline flash --tile 16,32,64,128,256 --head-dim 64',
      'time by tile, with its registers and shared memory',
    ],
    ['roofline flash --attention flash,tiled,plain --json | jq .rows', 'for other programs'],
  ],
  load: async ({ tile }) =>
    tile === undefined
      ? (await import('./benchmark.ts')).flashBenchmark
      : (await import('../tiles/benchmark.ts')).tilesBenchmark,
  async plan(args) {
    checkFlags(args);
    if (args.tile !== undefined) {
      const { tileDefaults } = await import('../tiles/parameters.ts');
      const shape = { ...usual, ...sweptBy(shapeParameters, args) };
      const settings = settingsBy(flashSettingParameters, args);
      const sides = { tileQueries: args.tile, tileKeys: args.tile };
      return {
        parameters: ({ type }) => ({ ...tileDefaults[type], ...settings, ...shape, ...sides }),
        dtypes: shape.dtype,
      };
    }
    const peer = await askedPeer(args);
    const shape = args.leaderboard ? leaderboard : { ...usual, ...sweptBy(shapeParameters, args) };
    const settings = {
      passes,
      peerAttentions: torchAttentionNames,
      ...settingsBy(flashSettingParameters, args),
    };
    return {
      parameters: ({ type }) => ({ ...flashDefaults[type], ...settings, ...shape, peer }),
      dtypes: shape.dtype,
    };
  },
});

/** Throws UsageError for flags that exclude each other. */
function checkFlags(args: GivenArguments): void {
  const changed = Object.entries(settingFlags).find(
    ([name, { default: usual }]) =>
      usual !== undefined && !tileFlags.includes(name) && String(args[name]) !== usual,
  );
  const untiled =
    changed?.[0] ??
    ['pass', 'peer', 'peer-attention'].find((name) => args[name] !== undefined) ??
    (args['leaderboard'] ? 'leaderboard' : undefined);
  if (args['tile'] !== undefined && untiled !== undefined) {
    throw new UsageError(`--tile times our forward pass alone: leave out --${untiled}.`);
  }
  const given = [...Object.keys(shapeFlags), 'pass'].find((name) => args[name] !== undefined);
  if (args['leaderboard'] && given !== undefined) {
    throw new UsageError(`--leaderboard is one case: leave out --${given}.`);
  }
  if (args['peer'] === undefined && args['peer-attention'] !== undefined) {
    throw new UsageError('--peer-attention is that of a peer: add --peer torch.');
  }
}
