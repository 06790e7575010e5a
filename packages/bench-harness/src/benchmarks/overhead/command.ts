import type { Flag } from '../../cli/command.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { settingFlagsOf, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { ownStepFlags, stepsBy } from '../e2e/flags.ts';
import { opParameters, overheadSettings, overheadStudies } from './parameters.ts';

/** What depends on the device has none. */
function withoutDefault(name: string, describe: string): Flag {
  const { default: _, ...flag } = ownStepFlags[name]!;
  return { ...flag, describe };
}

export const overheadCommand = benchmarkCommand('overhead', {
  flags: {
    study: {
      ...choicesOf('study', overheadStudies),
      default: overheadStudies.join(','),
      describe: 'Parts to run: ops, and a step of a model under instruments',
    },
    ...{ ...sweptFlagsOf(opParameters), ...settingFlagsOf(overheadSettings), ...modelFlags },
    size: sizeFlag('small, on the CPU tiny'),
    context: withoutDefault('context', 'Tokens of a sequence; 256 if not given, on the CPU 64'),
    batch: withoutDefault('batch', 'Sequences of a batch; 4 if not given, on the CPU 1'),
    dtype: ownStepFlags['dtype']!,
  },
  examples: [
    ['roofline overhead', 'ops, and instruments on a step of tiny on the CPU, of small on a GPU'],
    [
      'roofline overhead --study instruments --size small,2.7b --dtype float32,bfloat16',
      'instruments, sizes',
    ],
    ['roofline overhead --study ops --op add --device cuda --json', 'one op, for other programs'],
  ],
  load: async () => (await import('./benchmark.ts')).overheadBenchmark,
  async plan(args) {
    if (!args.study.includes('instruments')) {
      refuseModelFlags(args, [...Object.keys(modelFlags), 'context', 'batch'], {
        model: 'that runs under instruments',
        parts: 'instruments',
      });
    }
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    return {
      parameters: ({ type }) => ({
        ...(type === 'cpu' ? { context: [64], batch: [1] } : { context: [256], batch: [4] }),
        ...stepsBy(args, type === 'cpu' ? tiny : small, overheadSettings),
        ...{ ...sweptBy(opParameters, args), study: args.study },
      }),
      dtypes: null,
    };
  },
});
