import { choicesOf } from '../../cli/flags/choices.ts';
import { settingFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags, refuseModelFlags, sizeFlag } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { changedFlag, choosePeer, stepFlags, stepsBy, torchFlag } from '../e2e/flags.ts';
import { e2eDtypes } from '../e2e/parameters.ts';
import { precisionSettings, studies } from './parameters.ts';

export const precisionCommand = benchmarkCommand('precision', {
  flags: {
    ...{ ...modelFlags, ...stepFlags, ...settingFlagsOf(precisionSettings), ...torchFlag },
    size: sizeFlag('small, on the CPU tiny'),
    study: {
      ...choicesOf('study', studies),
      defaultDescription: 'all; accuracy with --peer torch',
      describe: 'Parts to run; accuracy needs --peer torch',
    },
    dtype: changedFlag('dtype', { default: e2eDtypes.join(',') }),
  },
  examples: [
    ['roofline precision', 'all of it: tiny on the CPU, small on a GPU'],
    ['roofline precision --study accumulation,dtypes', 'what is rounded, in seconds'],
    ['roofline precision --execution eager,compiled', 'what compiling gains in each precision'],
    [
      'roofline precision --size small,medium,large,xl,2.7b --peer torch',
      'speed-ups by size, compared with PyTorch',
    ],
  ],
  load: async () => (await import('./benchmark.ts')).precisionBenchmark,
  async plan(args) {
    const study = chooseStudies(args.study, args.peer !== undefined);
    if (!study.includes('accuracy') && !study.includes('speed')) {
      const model = { model: 'of accuracy and speed', parts: 'one of them' };
      refuseModelFlags(args, Object.keys(modelFlags), model);
    }
    const [small, tiny] = await Promise.all([chooseModels(args, 'small'), chooseModels(args, 'tiny')]);
    const steps = stepsBy(args, small, precisionSettings);
    const peer = await choosePeer(args);
    return {
      parameters: ({ type }) => ({ ...steps, model: type === 'cpu' ? tiny : small, peer, study }),
      dtypes: study.includes('speed') ? steps.dtype : null,
    };
  },
});

type Study = (typeof studies)[number];

/** All that can be without a peer, if none are named. Throws UsageError for what needs one. */
function chooseStudies(named: readonly Study[] | undefined, hasPeer: boolean): Study[] {
  if (named === undefined) return studies.filter((study) => hasPeer || study !== 'accuracy');
  if (hasPeer || !named.includes('accuracy')) return [...named];
  throw new UsageError("--study accuracy is against PyTorch's gradients: add --peer torch, or leave it out.");
}
