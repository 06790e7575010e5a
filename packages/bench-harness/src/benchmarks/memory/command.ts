import { resolve } from 'node:path';
import { defineCommand } from '../../cli/command.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { changedFlag, ownStepFlags, stepsBy } from '../e2e/flags.ts';

export const memoryCommand = defineCommand({
  flags: {
    ...{ ...modelFlags, ...ownStepFlags },
    context: changedFlag('context', { default: '128,256,512' }),
    mode: changedFlag('mode', { default: 'forward,train-step' }),
    dtype: changedFlag('dtype', { default: 'float32,bfloat16' }),
    warmup: changedFlag('warmup', { default: '2', describe: 'Steps before the recorded one' }),
    steps: changedFlag('steps', {
      default: '3',
      describe: 'Steps to time with recording off, and with it on',
    }),
    'stack-depth': {
      type: 'string',
      default: '20',
      describe: "Calls that are kept of each allocation, tensor-core's own counted; 0 for none",
      coerce: parseWholeNumber('stack-depth', 0),
    },
    ...{ ...deviceFlag, ...sweepFlags },
  },
  examples: [
    ['roofline memory --size small', 'three contexts, forward and train step, in float32 and bfloat16'],
    ['roofline memory --size 2.7b --context 512 --mode train-step --dtype bfloat16', 'one configuration'],
    ['roofline memory --size small --execution eager,compiled', 'compiled steps as well, with their arena'],
    ['roofline memory --out results/memory && roofline report results/memory', 'the timeline, as a page'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { memoryBenchmark } = await import('./benchmark.ts');
    const { SNAPSHOT_FOLDER_VARIABLE } = await import('./snapshot-folder.ts');
    const { checkWritable } = await import('../../records/results-folder.ts');
    const steps = stepsBy(args, await chooseModels(args, 'small'));
    const options = sweepOptions(args, 'memory');
    const snapshots = resolve(options.out, 'snapshots');
    // A cell writes its own after its measurement, which would be lost.
    checkWritable(snapshots);
    // The cells inherit the environment.
    process.env[SNAPSHOT_FOLDER_VARIABLE] = snapshots;
    const { exitCode } = await runBenchmark(memoryBenchmark, {
      parameters: () => ({ ...steps, stackDepth: args['stack-depth'] }),
      device: args.device,
      dtypes: null,
      ...options,
    });
    return exitCode;
  },
});
