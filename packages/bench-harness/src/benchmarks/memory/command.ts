import { resolve } from 'node:path';
import { settingFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { changedFlag, ownStepFlags, stepsBy } from '../e2e/flags.ts';
import { memorySettings } from './parameters.ts';

export const memoryCommand = benchmarkCommand('memory', {
  flags: {
    ...{ ...modelFlags, ...ownStepFlags },
    context: changedFlag('context', { default: '128,256,512' }),
    mode: changedFlag('mode', { default: 'forward,train-step' }),
    dtype: changedFlag('dtype', { default: 'float32,bfloat16' }),
    ...settingFlagsOf(memorySettings),
  },
  examples: [
    ['roofline memory --size small', 'three contexts, forward and train step, in float32 and bfloat16'],
    ['roofline memory --size 2.7b --context 512 --mode train-step --dtype bfloat16', 'one configuration'],
    ['roofline memory --size small --execution eager,compiled', 'compiled steps as well, with their arena'],
    ['roofline memory --out results/memory && roofline report results/memory', 'the timeline, as a page'],
  ],
  load: async () => (await import('./benchmark.ts')).memoryBenchmark,
  async plan(args, out) {
    const { SNAPSHOT_FOLDER_VARIABLE } = await import('./snapshot-folder.ts');
    const { checkWritable } = await import('../../records/results-folder.ts');
    const steps = stepsBy(args, await chooseModels(args, 'small'), memorySettings);
    const snapshots = resolve(out, 'snapshots');
    // A cell writes its own after its measurement, which would be lost.
    checkWritable(snapshots);
    // The cells inherit the environment.
    process.env[SNAPSHOT_FOLDER_VARIABLE] = snapshots;
    return { parameters: () => steps, dtypes: null };
  },
});
