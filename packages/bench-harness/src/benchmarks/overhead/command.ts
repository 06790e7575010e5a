import { changedFlag, ownStepFlags, stepsBy } from '../e2e/flags.ts';
import { defineCommand, type Flag } from '../../cli/command.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { opParameters, overheadStudies } from './parameters.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../model/flags.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';

const overheadFlags = {
  study: {
    ...choicesOf('study', overheadStudies),
    default: overheadStudies.join(','),
    describe: 'Parts to run: ops, and a step of a model under instruments',
  },
  ...sweptFlagsOf(opParameters),
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
  context: withoutDefault('context', 'Tokens of a sequence; 256 if not given, on the CPU 64'),
  batch: withoutDefault('batch', 'Sequences of a batch; 4 if not given, on the CPU 1'),
  dtype: ownStepFlags['dtype']!,
  warmup: changedFlag('warmup', {
    default: '3',
    describe: 'Rounds of the instruments before those that count',
  }),
  seed: ownStepFlags['seed']!,
  ...{ ...deviceFlag, ...sweepFlags },
} as const;

/** What depends on the device has none. */
function withoutDefault(name: string, describe: string): Flag {
  const { default: _, ...flag } = ownStepFlags[name]!;
  return { ...flag, describe };
}

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
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { overheadBenchmark } = await import('./benchmark.ts');
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    const { exitCode } = await runBenchmark(overheadBenchmark, {
      parameters: ({ type }) => ({
        ...(type === 'cpu' ? { context: [64], batch: [1] } : { context: [256], batch: [4] }),
        ...{ ...stepsBy(args, type === 'cpu' ? tiny : small), ...sweptBy(opParameters, args) },
        ...{ study: args.study, calls: args.calls, repeats: args.repeats },
      }),
      device: args.device,
      dtypes: null,
      ...sweepOptions(args, 'overhead'),
    });
    return exitCode;
  },
});
