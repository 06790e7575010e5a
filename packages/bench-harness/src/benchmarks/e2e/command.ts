import { choicesOf } from '../../cli/flags/choices.ts';
import { settingFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { parseWholeNumbers } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { peerNames } from '../../peer/kinds.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { choosePeers, stepFlags, stepsBy } from './flags.ts';
import { stepSettings } from './parameters.ts';

const settingFlags = settingFlagsOf(stepSettings);

export const e2eCommand = benchmarkCommand(({ warmup }) => (warmup.length > 1 ? 'warmup' : 'e2e'), {
  flags: {
    ...{ ...modelFlags, ...stepFlags, ...settingFlags },
    warmup: {
      type: 'string',
      default: settingFlags['warmup']!.default as string,
      describe: 'Steps before those that count; several numbers are contrasted in a study',
      coerce: parseWholeNumbers('warmup', 0),
    },
    peer: {
      ...choicesOf('peer', peerNames),
      describe:
        'Run the same work in PyTorch or JAX in turn with ours, of several each (Python by ROOFLINE_PYTHON)',
    },
  },
  examples: [
    ['roofline e2e --size small', 'the three modes of one size'],
    ['roofline e2e --size small,medium --context 128,256 --out results/sweep', 'a sweep; again to resume it'],
    ['roofline e2e --size small --peer torch', 'PyTorch for comparison, in turn'],
    [
      'roofline e2e --attention plain,flash --peer torch --peer-attention plain,sdpa',
      'attention of both sides',
    ],
    [
      'roofline e2e --execution eager,compiled --peer torch --peer-execution eager,reduce-overhead',
      'compiled steps, on both sides',
    ],
    [
      'roofline e2e --execution compiled --dtype bfloat16 --peer torch,jax --peer-execution whole-graph',
      'compared with the strongest peers',
    ],
    ['roofline e2e --d-model 512 --d-ff 2048 --layers 4 --heads 8', 'a size of your own'],
    [
      'roofline e2e --model Qwen2.5-0.5B --attention flash',
      'a model of Hugging Face, whose weights are not needed',
    ],
    ['roofline e2e --size small --warmup 0,1,2,5', 'what the steps before those that count are good for'],
    ['roofline e2e --size small --json | jq .rows', 'for other programs'],
  ],
  load: async ({ warmup }) =>
    warmup.length > 1
      ? (await import('../warmup/benchmark.ts')).warmupBenchmark
      : (await import('./benchmark.ts')).e2eBenchmark,
  async plan(args) {
    const { warmup: counts } = args;
    const steps = stepsBy(args, await chooseModels(args, 'small'), stepSettings);
    const isStudy = counts.length > 1;
    if (isStudy && ['peer', 'peer-attention', 'peer-execution'].some((name) => args[name] !== undefined)) {
      throw new UsageError('--peer goes with one number of --warmup steps: a warm-up study runs only ours.');
    }
    const peer = isStudy ? null : await choosePeers(args);
    return {
      parameters: () => ({ ...steps, warmup: isStudy ? counts : counts[0], peer }),
      dtypes: steps.dtype,
    };
  },
});
