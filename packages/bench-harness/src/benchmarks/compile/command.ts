import { defineCommand, type Flags } from '../../cli/command.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { chooseModels, modelFlags, sweptFlags } from '../../cli/flags/model-flags.ts';
import { stepSweep } from '../../cli/flags/step-sweep.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';

const { mode, dtype, attention, steps, seed } = e2eFlags;

const flags = {
  ...{ ...modelFlags, ...sweptFlags, mode, dtype, attention },
  steps: { ...steps, describe: 'Steps to time, once compiled' },
  'cold-and-warm': {
    type: 'boolean',
    default: true,
    describe: 'On a GPU, time compiling in processes of its own, with the kernel cache empty and full',
  },
  ...{ ...deviceFlag, seed, ...sweepFlags },
} as const satisfies Flags;

export const compileCommand = defineCommand({
  flags,
  examples: [
    ['roofline compile --size small', 'forward, with backward, and the whole step'],
    [
      'roofline compile --size small --mode train-step --dtype float32,bfloat16',
      'one mode in two precisions',
    ],
    ['roofline compile --out results/compile && roofline report results/compile', 'every call, as a page'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { compileBenchmark } = await import('./benchmark.ts');
    const sweep = stepSweep({ ...args, execution: ['compiled'] }, await chooseModels(args, 'small'));
    const { exitCode } = await runBenchmark(compileBenchmark, {
      parameters: () => ({ ...sweep, coldAndWarm: args['cold-and-warm'] }),
      device: args.device,
      dtypes: [],
      ...sweepOptions(args, 'compile'),
    });
    return exitCode;
  },
});
