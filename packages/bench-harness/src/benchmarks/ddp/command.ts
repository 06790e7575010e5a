import { defineCommand, type Flags } from '../../cli/command.ts';
import { choiceOf, choicesOf, dtypeChoices } from '../../cli/flags/choices.ts';
import { e2eFlags } from '../../cli/flags/e2e-flags.ts';
import { chooseModels, modelFlags, sizeFlag, sweptFlags } from '../../cli/flags/model-flags.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parsePositiveNumber, parseWholeNumber, parseWholeNumbers } from '../../cli/option-values.ts';
import { tell } from '../../cli/output.ts';
import { requireBackend } from '../../device/require-backend.ts';
import { findPeer } from '../../peer/peer-setting.ts';
import { ddpBackends, ddpDtypes, ddpModes, ddpOptimizers } from './parameters.ts';

const mebibyte = 2 ** 20;

const flags = {
  nproc: {
    type: 'string',
    default: '2',
    describe: 'Ranks, each a process of this machine',
    coerce: parseWholeNumbers('nproc', 1),
    completions: () => ['1', '2', '4'],
  },
  mode: {
    ...choicesOf('mode', ddpModes),
    default: ddpModes.join(','),
    describe: 'When gradients are reduced: one by one, in one buffer, or in buckets during the backward pass',
  },
  optimizer: {
    ...choicesOf('optimizer', ddpOptimizers),
    default: 'whole',
    describe: "AdamW's state: whole on each rank, or sharded",
  },
  backend: {
    ...choiceOf('backend', ddpBackends),
    default: 'gloo',
    describe: 'gloo on the CPU, nccl on GPUs',
  },
  'bucket-mib': {
    type: 'string',
    default: '25',
    describe: 'When a bucket of overlap is full, in MiB; the first one is with 1',
    coerce: parsePositiveNumber('bucket-mib'),
  },
  ...modelFlags,
  size: sizeFlag('tiny'),
  ...sweptFlags,
  context: { ...sweptFlags.context, default: '64' },
  dtype: {
    ...e2eFlags.dtype,
    ...dtypeChoices(ddpDtypes),
  },
  warmup: { ...e2eFlags.warmup, default: '3', coerce: parseWholeNumber('warmup', 0) },
  steps: e2eFlags.steps,
  seed: e2eFlags.seed,
  peer: e2eFlags.peer,
  ...sweepFlags,
} as const satisfies Flags;

export const ddpCommand = defineCommand({
  flags,
  examples: [
    ['roofline ddp', 'the three modes of tiny on two ranks of this machine'],
    ['roofline ddp --nproc 1,2,4 --size tiny,small --out results/ddp', 'a sweep; again to resume it'],
    ['roofline ddp --peer torch', "PyTorch's DistributedDataParallel for comparison, in turn"],
    ['roofline ddp --optimizer whole,sharded --mode overlap', "memory by rank, with AdamW's state split too"],
    ['roofline ddp --backend nccl --nproc 2 --size xl --dtype bfloat16', 'on two GPUs'],
  ],
  async run(args) {
    await requireBackend(args.backend);
    const { runBenchmark } = await import('../../cli/run-benchmark.ts');
    const { ddpBenchmark } = await import('./benchmark.ts');
    const models = await chooseModels(args, 'tiny');
    const peer = args.peer === undefined ? null : await findPeer();
    const options = sweepOptions(args, 'ddp');
    const { exitCode, records, isKept } = await runBenchmark(ddpBenchmark, {
      parameters: () => ({
        models,
        contexts: args.context,
        batches: args.batch,
        dtypes: args.dtype,
        optimizers: args.optimizer,
        worldSizes: args.nproc,
        modes: args.mode,
        backend: args.backend,
        bucketBytes: Math.min(Math.ceil(args['bucket-mib'] * mebibyte), Number.MAX_SAFE_INTEGER),
        warmup: args.warmup,
        steps: args.steps,
        seed: args.seed,
        peer,
      }),
      device: args.backend === 'nccl' ? 'cuda' : 'cpu',
      dtypes: [],
      ...options,
    });
    if (!isKept) return exitCode;
    const { writeDdpTraces } = await import('./write-traces.ts');
    for (const path of writeDdpTraces(records, options.out))
      tell(`Trace: ${path} (open in ui.perfetto.dev).`);
    return exitCode;
  },
});
