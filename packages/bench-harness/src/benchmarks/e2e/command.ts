import { defineCommand } from '../../cli/command.ts';
import { choicesOf } from '../../cli/flags/choices.ts';
import { deviceFlag } from '../../cli/flags/device-flag.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parseWholeNumbers } from '../../cli/option-values.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { peerNames } from '../../peer/kinds.ts';
import { changedFlag, choosePeers, stepFlags, stepsBy } from './flags.ts';

export const e2eCommand = defineCommand({
  flags: {
    ...{ ...modelFlags, ...stepFlags },
    warmup: changedFlag('warmup', {
      describe: 'Steps before those that count; several numbers are contrasted in a study',
      coerce: parseWholeNumbers('warmup', 0),
    }),
    peer: {
      ...choicesOf('peer', peerNames),
      describe:
        'Run the same work in PyTorch or JAX in turn with ours, of several each (Python by ROOFLINE_PYTHON)',
    },
    ...{ ...deviceFlag, ...sweepFlags },
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
      'beside the strongest peers',
    ],
    ['roofline e2e --d-model 512 --d-ff 2048 --layers 4 --heads 8', 'a size of your own'],
    ['roofline e2e --size small --warmup 0,1,2,5', 'what the steps before those that count are good for'],
    ['roofline e2e --size small --json | jq .rows', 'for other programs'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { warmup, dtype, ...steps } = stepsBy(args, await chooseModels(args, 'small'));
    const counts = warmup as unknown as readonly number[];
    const shared = { device: args.device, dtypes: dtype };
    if (counts.length > 1) {
      if (['peer', 'peer-attention', 'peer-execution'].some((name) => args[name] !== undefined)) {
        throw new UsageError(
          '--peer goes with one number of --warmup steps: a warm-up study is of ours alone.',
        );
      }
      const { warmupBenchmark } = await import('../warmup/benchmark.ts');
      const parameters = () => ({ ...steps, dtype, warmup: counts });
      const study = { parameters, ...shared, ...sweepOptions(args, 'warmup') };
      return (await runBenchmark(warmupBenchmark, study)).exitCode;
    }
    const { e2eBenchmark } = await import('./benchmark.ts');
    const peer = await choosePeers(args);
    const parameters = () => ({ ...steps, dtype, warmup: counts[0], peer });
    return (await runBenchmark(e2eBenchmark, { parameters, ...shared, ...sweepOptions(args, 'e2e') }))
      .exitCode;
  },
});
