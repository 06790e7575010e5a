import { resolve } from 'node:path';
import { defineCommand, type Flags } from '../cli/command.ts';
import { parseChoices, parseWholeNumber, parseWholeNumbers } from '../cli/option-values.ts';
import { e2eDtypes, modes } from '../e2e/parameters.ts';
import { deviceFlag } from './device-flag.ts';
import { chooseModels, modelFlags, sweptFlags } from './model-flags.ts';
import { stepSweep } from './step-sweep.ts';
import { sweepFlags, sweepOptions } from './sweep-flags.ts';

const flags = {
  ...modelFlags,
  ...sweptFlags,
  context: {
    ...sweptFlags.context,
    default: '128,256,512',
    coerce: parseWholeNumbers('context', 1),
  },
  mode: {
    type: 'string',
    default: 'forward,train-step',
    describe: 'What a step does',
    coerce: parseChoices('mode', modes),
    completions: () => modes,
  },
  dtype: {
    type: 'string',
    default: 'float32,bfloat16',
    describe: 'Precision of the arithmetic',
    coerce: parseChoices('dtype', e2eDtypes),
    completions: () => e2eDtypes,
  },
  warmup: {
    type: 'string',
    default: '2',
    describe: 'Steps before the recorded one',
    coerce: parseWholeNumber('warmup', 0),
  },
  steps: {
    type: 'string',
    default: '3',
    describe: 'Steps to time with recording off, and with it on',
    coerce: parseWholeNumber('steps', 1),
  },
  'stack-depth': {
    type: 'string',
    default: '20',
    describe: "Calls that are kept of each allocation, tensor-core's own counted; 0 for none",
    coerce: parseWholeNumber('stack-depth', 0),
  },
  ...deviceFlag,
  seed: {
    type: 'string',
    default: '0',
    describe: 'Seed of weights and tokens',
    coerce: parseWholeNumber('seed', 0),
  },
  ...sweepFlags,
} as const satisfies Flags;

export const memoryCommand = defineCommand({
  name: 'memory',
  summary: 'Record where the memory of a step goes: timeline, peaks, origins, what backward needs',
  flags,
  examples: [
    ['roofline memory --size small', 'three contexts, forward and train step, in float32 and bfloat16'],
    ['roofline memory --size 2.7b --context 512 --mode train-step --dtype bfloat16', 'one configuration'],
    ['roofline memory --out results/memory && roofline report results/memory', 'the timeline, as a page'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../cli/run-benchmark.ts');
    const { memoryBenchmark } = await import('../memory/benchmark.ts');
    const { SNAPSHOT_FOLDER_VARIABLE } = await import('../memory/snapshot-folder.ts');
    const models = await chooseModels(args, 'small');
    const options = sweepOptions(args, 'memory');
    // The cells inherit the environment.
    process.env[SNAPSHOT_FOLDER_VARIABLE] = resolve(options.out, 'snapshots');
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
