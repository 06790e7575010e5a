import { defineCommand } from '../../cli/command.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { changedFlag, ownStepFlags, stepsBy } from '../e2e/flags.ts';

const { execution: _, warmup: __, ...flags } = ownStepFlags;

export const compileCommand = defineCommand({
  flags: {
    ...{ ...modelFlags, ...flags },
    steps: changedFlag('steps', { describe: 'Steps to time, once compiled' }),
    'cold-and-warm': {
      type: 'boolean',
      default: true,
      describe: 'On a GPU, time compiling in processes of its own, with the kernel cache empty and full',
    },
    ...{ ...deviceFlag, ...sweepFlags },
  },
  examples: [
    ['roofline compile --size small', 'forward, with backward, and the whole step'],
    [
      'roofline compile --size small --mode train-step --dtype float32,bfloat16',
      'one mode in two precisions',
    ],
    ['roofline compile --out results/compile && roofline report results/compile', 'every call, as a page'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { compileBenchmark } = await import('./benchmark.ts');
    const steps = stepsBy(args, await chooseModels(args, 'small'));
    const { exitCode } = await runBenchmark(compileBenchmark, {
      parameters: () => ({ ...steps, coldAndWarm: args['cold-and-warm'] }),
      device: args.device,
      dtypes: null,
      ...sweepOptions(args, 'compile'),
    });
    return exitCode;
  },
});
