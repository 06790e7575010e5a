import { defineCommand, type Flags } from '../../cli/command.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { e2eDtypes } from '../e2e/parameters.ts';
import { studies } from './parameters.ts';
import { e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { choosePeer } from '../e2e/command.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../cli/flags/model-flags.ts';
import { stepSweep } from '../../cli/flags/step-sweep.ts';
import { sweepOptions } from '../../cli/flags/sweep-flags.ts';

const precisionFlags = {
  ...e2eFlags,
  size: sizeFlag('small, on the CPU tiny'),
  study: {
    ...choicesOf('study', studies),
    defaultDescription: 'all; accuracy with --peer torch',
    describe: 'Parts to run; accuracy needs --peer torch',
  },
  dtype: { ...e2eFlags.dtype, default: e2eDtypes.join(',') },
  'loss-steps': {
    type: 'string',
    default: '200',
    describe: 'Steps of the loss curves',
    coerce: parseWholeNumber('loss-steps', 1),
  },
} as const satisfies Flags;

export const precisionCommand = defineCommand({
  flags: precisionFlags,
  examples: [
    ['roofline precision', 'all of it: tiny on the CPU, small on a GPU'],
    ['roofline precision --study accumulation,dtypes', 'what is rounded, in seconds'],
    ['roofline precision --execution eager,compiled', 'what compiling gains in each precision'],
    [
      'roofline precision --size small,medium,large,xl,2.7b --peer torch',
      'speed-ups by size, compared with PyTorch',
    ],
  ],
  async run(args) {
    const chosen = chooseStudies(args.study, args.peer !== undefined);
    if (!chosen.includes('accuracy') && !chosen.includes('speed')) {
      const model = { model: 'of accuracy and speed', parts: 'one of them' };
      refuseModelFlags(args, Object.keys(modelFlags), model);
    }
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { precisionBenchmark } = await import('./benchmark.ts');
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    const peer = await choosePeer(args);
    const { exitCode } = await runBenchmark(precisionBenchmark, {
      parameters: ({ type }) => ({
        studies: chosen,
        ...stepSweep(args, type === 'cpu' ? tiny : small),
        warmup: args.warmup,
        lossSteps: args['loss-steps'],
        ...peer,
      }),
      device: args.device,
      dtypes: chosen.includes('speed') ? args.dtype : [],
      ...sweepOptions(args, 'precision'),
    });
    return exitCode;
  },
});

type Study = (typeof studies)[number];

/** All that can be without a peer, if none are named. Throws UsageError for what needs one. */
function chooseStudies(named: readonly Study[] | undefined, hasPeer: boolean): Study[] {
  if (named === undefined) return studies.filter((study) => hasPeer || study !== 'accuracy');
  if (hasPeer || !named.includes('accuracy')) return [...named];
  throw new UsageError("--study accuracy is against PyTorch's gradients: add --peer torch, or leave it out.");
}
