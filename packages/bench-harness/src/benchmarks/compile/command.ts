import { settingFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { ownStepFlags, stepsBy } from '../e2e/flags.ts';
import { compileSettings } from './parameters.ts';

const { execution: _, ...flags } = ownStepFlags;

export const compileCommand = benchmarkCommand('compile', {
  flags: {
    ...{ ...modelFlags, ...flags, ...settingFlagsOf(compileSettings) },
    'cold-and-warm': {
      type: 'boolean',
      default: true,
      describe: 'On a GPU, time compiling in processes of its own, with the kernel cache empty and full',
    },
  },
  examples: [
    ['roofline compile --size small', 'forward, with backward, and the whole step'],
    [
      'roofline compile --size small --mode train-step --dtype float32,bfloat16',
      'one mode in two precisions',
    ],
    ['roofline compile --out results/compile && roofline report results/compile', 'every call, as a page'],
  ],
  load: async () => (await import('./benchmark.ts')).compileBenchmark,
  async plan(args) {
    const steps = stepsBy(args, await chooseModels(args, 'small'), compileSettings);
    return { parameters: () => steps, dtypes: null };
  },
});
