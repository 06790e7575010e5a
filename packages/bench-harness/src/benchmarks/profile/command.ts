import { defineCommand } from '../../cli/command.ts';
import { tell } from '../../cli/output.ts';
import { single } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { phases } from './parameters.ts';
import { choiceOf, peerChoice } from '../../cli/flags/choices.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { changedFlag, choosePeer, stepFlags, stepsBy } from '../e2e/flags.ts';

const flags = {
  ...{ ...modelFlags, ...stepFlags },
  mode: changedFlag('mode', { default: 'train-step' }),
  warmup: changedFlag('warmup', { default: '3' }),
  steps: changedFlag('steps', { default: '3', describe: 'Steps to profile' }),
  peer: {
    ...peerChoice,
    describe: 'Profile the same work in eager PyTorch after ours (Python by ROOFLINE_PYTHON)',
  },
  phase: {
    ...choiceOf('phase', phases),
    default: 'all',
    describe: 'Only the kernels of this phase',
  },
  range: {
    type: 'string',
    describe: "Only kernels inside ranges of this name; * stands for any text: 'attention.*'",
    coerce: parseRange,
    completions: () => ['attention.*', 'layers.0', 'loss', 'optimizer'],
  },
  ...{ ...deviceFlag, ...sweepFlags },
} as const;

/** No range has an empty name: that of a shell variable that is not set would leave nothing to show. */
function parseRange(given: string | readonly string[]): string {
  const range = single('range', given);
  if (range === '') throw new UsageError("--range wants a name, such as 'attention.*'.");
  return range;
}

export const profileCommand = defineCommand({
  flags,
  examples: [
    ['roofline profile --size small', 'a whole step'],
    ['roofline profile --size small --phase backward', 'the backward pass alone'],
    ["roofline profile --size small --range 'attention.*'", 'attention alone'],
    ['roofline profile --size small --execution eager,compiled', 'the graph of a compiled step as well'],
    ['roofline profile --size small --peer torch', "our kernels compared with those of PyTorch's profiler"],
    ['roofline profile --size small --out results/profile', 'then open results/profile/traces in Perfetto'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { profileBenchmark } = await import('./benchmark.ts');
    const { writeTraces } = await import('./trace/write-traces.ts');
    const options = sweepOptions(args, 'profile');
    const steps = stepsBy(args, await chooseModels(args, 'small'));
    const peer = await choosePeer(args);
    const { exitCode, records, isKept } = await runBenchmark(profileBenchmark, {
      parameters: () => ({ ...steps, peer, phase: args.phase, range: args.range ?? null }),
      device: args.device,
      // Under autocast some ops stay in float32.
      dtypes: [...new Set([...steps.dtype, 'float32' as const])],
      ...options,
    });
    if (!isKept) return exitCode;
    for (const path of writeTraces(records, options.out)) tell(`Trace: ${path} (open in ui.perfetto.dev).`);
    return exitCode;
  },
});
