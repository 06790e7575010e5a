import type { InferredOptionTypes } from 'yargs';
import { defineCommand, type Flags } from '../../cli/command.ts';
import { parseWholeNumbers } from '../../cli/option-values.ts';
import type { E2eParameters } from './parameters.ts';
import { UsageError } from '../../errors.ts';
import { type E2eArguments, e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { chooseModels } from '../../cli/flags/model-flags.ts';
import { stepSweep } from '../../cli/flags/step-sweep.ts';
import { sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { findPeer } from '../../peer/peer-setting.ts';

const flags = {
  ...e2eFlags,
  warmup: {
    ...e2eFlags.warmup,
    describe: 'Steps before those that count; several numbers are contrasted in a study',
    coerce: parseWholeNumbers('warmup', 0),
  },
} as const satisfies Flags;

type Arguments = InferredOptionTypes<typeof flags>;

export const e2eCommand = defineCommand({
  flags,
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
    ['roofline e2e --d-model 512 --d-ff 2048 --layers 4 --heads 8', 'a size of your own'],
    ['roofline e2e --size small --warmup 0,1,2,5', 'what the steps before those that count are good for'],
    ['roofline e2e --size small --json | jq .rows', 'for other programs'],
  ],
  async run(args) {
    const [warmup] = args.warmup;
    return args.warmup.length === 1 ? runE2e(args, warmup!) : runWarmupStudy(args);
  },
});

async function runE2e(args: Arguments, warmup: number): Promise<number> {
  const { runBenchmark } = await import('../../cli/run-benchmark.ts');
  const { e2eBenchmark } = await import('./benchmark.ts');
  const sweep = stepSweep(args, await chooseModels(args, 'small'));
  const peer = await choosePeer(args);
  const { exitCode } = await runBenchmark(e2eBenchmark, {
    parameters: () => ({ ...sweep, warmup, ...peer }),
    device: args.device,
    dtypes: args.dtype,
    ...sweepOptions(args, 'e2e'),
  });
  return exitCode;
}

async function runWarmupStudy(args: Arguments): Promise<number> {
  const { peer, 'peer-attention': attention, 'peer-execution': execution } = args;
  if ([peer, attention, execution].some((given) => given !== undefined)) {
    throw new UsageError('--peer goes with one number of --warmup steps: a warm-up study is of ours alone.');
  }
  const { runBenchmark } = await import('../../cli/run-benchmark.ts');
  const { warmupBenchmark } = await import('../warmup/benchmark.ts');
  const sweep = stepSweep(args, await chooseModels(args, 'small'));
  const { exitCode } = await runBenchmark(warmupBenchmark, {
    parameters: () => ({ ...sweep, warmups: args.warmup }),
    device: args.device,
    dtypes: args.dtype,
    ...sweepOptions(args, 'warmup'),
  });
  return exitCode;
}

/** The peer that the flags ask for, and its ways to run. Throws UsageError where it cannot be had. */
export async function choosePeer(
  args: Pick<E2eArguments, 'peer' | 'peer-attention' | 'peer-execution'>,
): Promise<Pick<E2eParameters, 'peer' | 'peerAttentions' | 'peerExecutions'>> {
  const { 'peer-attention': attentions, 'peer-execution': executions } = args;
  if (args.peer === undefined) {
    if (attentions !== undefined)
      throw new UsageError('--peer-attention is that of a peer: add --peer torch.');
    if (executions !== undefined)
      throw new UsageError('--peer-execution is that of a peer: add --peer torch.');
  }
  return {
    peer: args.peer === undefined ? null : await findPeer(),
    peerAttentions: attentions ?? ['plain'],
    peerExecutions: executions ?? ['eager'],
  };
}
