import { resolve } from 'node:path';
import { defineCommand, type Flags } from '../../cli/command.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { chooseModels } from '../../cli/flags/model-flags.ts';
import { stepSweep } from '../../cli/flags/step-sweep.ts';
import { sweepOptions } from '../../cli/flags/sweep-flags.ts';

const { peer: _, 'peer-attention': __, 'peer-execution': ___, ...stepFlags } = e2eFlags;

const flags = {
  ...stepFlags,
  context: { ...e2eFlags.context, default: '128,256,512' },
  mode: { ...e2eFlags.mode, default: 'forward,train-step' },
  dtype: { ...e2eFlags.dtype, default: 'float32,bfloat16' },
  warmup: { ...e2eFlags.warmup, default: '2', describe: 'Steps before the recorded one' },
  steps: { ...e2eFlags.steps, default: '3', describe: 'Steps to time with recording off, and with it on' },
  'stack-depth': {
    type: 'string',
    default: '20',
    describe: "Calls that are kept of each allocation, tensor-core's own counted; 0 for none",
    coerce: parseWholeNumber('stack-depth', 0),
  },
} as const satisfies Flags;

export const memoryCommand = defineCommand({
  flags,
  examples: [
    ['roofline memory --size small', 'three contexts, forward and train step, in float32 and bfloat16'],
    ['roofline memory --size 2.7b --context 512 --mode train-step --dtype bfloat16', 'one configuration'],
    ['roofline memory --size small --execution eager,compiled', 'compiled steps as well, with their arena'],
    ['roofline memory --out results/memory && roofline report results/memory', 'the timeline, as a page'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { memoryBenchmark } = await import('./benchmark.ts');
    const { SNAPSHOT_FOLDER_VARIABLE } = await import('./snapshot-folder.ts');
    const models = await chooseModels(args, 'small');
    const options = sweepOptions(args, 'memory');
    const { checkWritable } = await import('../../records/results-folder.ts');
    const snapshots = resolve(options.out, 'snapshots');
    // A cell writes its own after its measurement, which would be lost.
    checkWritable(snapshots);
    // The cells inherit the environment.
    process.env[SNAPSHOT_FOLDER_VARIABLE] = snapshots;
    const { exitCode } = await runBenchmark(memoryBenchmark, {
      parameters: () => ({
        ...stepSweep(args, models),
        warmup: args.warmup,
        stackDepth: args['stack-depth'],
      }),
      device: args.device,
      dtypes: [],
      ...options,
    });
    return exitCode;
  },
});
