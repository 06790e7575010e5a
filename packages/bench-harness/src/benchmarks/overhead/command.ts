import { defineCommand, type Flags } from '../../cli/command.ts';
import { parseWholeNumber, parseWholeNumbers } from '../../cli/option-values.ts';
import { eagerOpNames, overheadStudies } from './parameters.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../cli/flags/model-flags.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';

const overheadFlags = {
  study: {
    ...choicesOf('study', overheadStudies),
    default: overheadStudies.join(','),
    describe: 'Parts to run: ops, and a step of a model under instruments',
  },
  op: {
    ...choicesOf('op', eagerOpNames),
    default: eagerOpNames.join(','),
    describe: 'Ops to measure',
  },
  calls: {
    type: 'string',
    default: '500',
    describe: 'Calls of one repeat of an op',
    coerce: parseWholeNumber('calls', 1),
  },
  repeats: {
    type: 'string',
    default: '20',
    describe: 'Repeats of an op, and rounds of the instruments, that the median is of',
    coerce: parseWholeNumber('repeats', 1),
  },
  ...modelFlags,
  size: sizeFlag('small, on the CPU tiny'),
  context: {
    type: 'string',
    describe: 'Tokens of a sequence; 256 if not given, on the CPU 64',
    coerce: parseWholeNumbers('context', 1),
  },
  batch: {
    type: 'string',
    describe: 'Sequences of a batch; 4 if not given, on the CPU 1',
    coerce: parseWholeNumbers('batch', 1),
  },
  dtype: e2eFlags.dtype,
  warmup: {
    ...e2eFlags.warmup,
    default: '3',
    describe: 'Rounds of the instruments before those that count',
  },
  ...deviceFlag,
  seed: e2eFlags.seed,
  ...sweepFlags,
} as const satisfies Flags;

export const overheadCommand = defineCommand({
  flags: overheadFlags,
  examples: [
    ['roofline overhead', 'ops, and instruments on a step of tiny on the CPU, of small on a GPU'],
    [
      'roofline overhead --study instruments --size small,2.7b --dtype float32,bfloat16',
      'instruments, sizes',
    ],
    ['roofline overhead --study ops --op add --device cuda --json', 'one op, for other programs'],
  ],
  async run(args) {
    if (!args.study.includes('instruments')) {
      refuseModelFlags(args, [...Object.keys(modelFlags), 'context', 'batch'], {
        model: 'that runs under instruments',
        parts: 'instruments',
      });
    }
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { overheadBenchmark } = await import('./benchmark.ts');
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    const { exitCode } = await runBenchmark(overheadBenchmark, {
      parameters: ({ type }) => ({
        studies: args.study,
        ops: args.op,
        calls: args.calls,
        repeats: args.repeats,
        models: type === 'cpu' ? tiny : small,
        contexts: args.context ?? [type === 'cpu' ? 64 : 256],
        batches: args.batch ?? [type === 'cpu' ? 1 : 4],
        dtypes: args.dtype,
        warmup: args.warmup,
        seed: args.seed,
      }),
      device: args.device,
      dtypes: [],
      ...sweepOptions(args, 'overhead'),
    });
    return exitCode;
  },
});
