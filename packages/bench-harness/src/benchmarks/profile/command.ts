import { peerChoice } from '../../cli/flags/peer-flag.ts';
import { settingFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { single } from '../../cli/option-values.ts';
import { tell } from '../../cli/output.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { changedFlag, choosePeer, stepFlags, stepsBy } from '../e2e/flags.ts';
import { profileSettings } from './parameters.ts';

/** No range has an empty name: that of a shell variable that is not set would leave nothing to show. */
function parseRange(given: string | readonly string[]): string {
  const range = single('range', given);
  if (range === '') throw new UsageError("--range wants a name, such as 'attention.*'.");
  return range;
}

export const profileCommand = benchmarkCommand('profile', {
  flags: {
    ...{ ...modelFlags, ...stepFlags },
    mode: changedFlag('mode', { default: 'train-step' }),
    ...settingFlagsOf(profileSettings),
    peer: {
      ...peerChoice,
      describe: 'Profile the same work in eager PyTorch after ours (Python by ROOFLINE_PYTHON)',
    },
    range: {
      type: 'string',
      describe: "Only kernels inside ranges of this name; * stands for any text: 'attention.*'",
      coerce: parseRange,
      completions: () => ['attention.*', 'layers.0', 'loss', 'optimizer'],
    },
  },
  examples: [
    ['roofline profile --size small', 'a whole step'],
    ['roofline profile --size small --phase backward', 'the backward pass alone'],
    ["roofline profile --size small --range 'attention.*'", 'attention alone'],
    ['roofline profile --size small --execution eager,compiled', 'the graph of a compiled step as well'],
    ['roofline profile --size small --peer torch', "our kernels compared with those of PyTorch's profiler"],
    ['roofline profile --size small --out results/profile', 'then open results/profile/traces in Perfetto'],
  ],
  load: async () => (await import('./benchmark.ts')).profileBenchmark,
  async plan(args) {
    const steps = stepsBy(args, await chooseModels(args, 'small'), profileSettings);
    const peer = await choosePeer(args);
    return {
      parameters: () => ({ ...steps, peer, range: args.range ?? null }),
      // Under autocast some ops stay in float32.
      dtypes: [...new Set([...steps.dtype, 'float32' as const])],
    };
  },
  async written(records, out) {
    const { writeTraces } = await import('./trace/write-traces.ts');
    for (const path of writeTraces(records, out)) tell(`Trace: ${path} (open in ui.perfetto.dev).`);
  },
});
