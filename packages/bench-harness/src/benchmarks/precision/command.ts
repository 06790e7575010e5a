import { defineCommand } from '../../cli/command.ts';
import { parseWholeNumber } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { e2eDtypes } from '../e2e/parameters.ts';
import { studies } from './parameters.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { changedFlag, choosePeer, stepFlags, stepsBy } from '../e2e/flags.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../model/flags.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';

const precisionFlags = {
  ...{ ...modelFlags, ...stepFlags },
  size: sizeFlag('small, on the CPU tiny'),
  study: {
    ...choicesOf('study', studies),
    defaultDescription: 'all; accuracy with --peer torch',
    describe: 'Parts to run; accuracy needs --peer torch',
  },
  dtype: changedFlag('dtype', { default: e2eDtypes.join(',') }),
  'loss-steps': {
    type: 'string',
    default: '200',
    describe: 'Steps of the loss curves',
    coerce: parseWholeNumber('loss-steps', 1),
  },
  ...{ ...deviceFlag, ...sweepFlags },
} as const;

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
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { precisionBenchmark } = await import('./benchmark.ts');
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    const steps = stepsBy(args, small);
    const peer = await choosePeer(args);
    const { exitCode } = await runBenchmark(precisionBenchmark, {
      parameters: ({ type }) => ({
        ...{ ...steps, model: type === 'cpu' ? tiny : small, peer },
        ...{ study: chosen, lossSteps: args['loss-steps'] },
      }),
      device: args.device,
      dtypes: chosen.includes('speed') ? steps.dtype : null,
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
