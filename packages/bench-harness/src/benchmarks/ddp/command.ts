import { defineCommand } from '../../cli/command.ts';
import { choiceOf } from '../../cli/flags/choices.ts';
import { ranksDeviceFlag } from '../../cli/flags/device-flag.ts';
import { settingFlagsOf, settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { sweepFlags, sweepOptions } from '../../cli/flags/sweep-flags.ts';
import { parsePositiveNumber } from '../../cli/option-values.ts';
import { showWhile } from '../../cli/show-while.ts';
import { tell } from '../../cli/output.ts';
import { chooseBackend, requireBackend } from '../../device/require-backend.ts';
import { chooseModels, modelFlags, sizeFlag } from '../../model/flags.ts';
import { findPeer } from '../../peer/peer-setting.ts';
import { changedFlag, stepFlags } from '../e2e/flags.ts';
import { stepSettings } from '../e2e/parameters.ts';
import { ddpBackends, ddpSwept } from './parameters.ts';

const mebibyte = 2 ** 20;

const flags = {
  ...sweptFlagsOf(ddpSwept),
  backend: {
    ...choiceOf('backend', ddpBackends),
    describe: 'gloo on the CPU, nccl on GPUs; as --device says if not given',
  },
  ...ranksDeviceFlag,
  'bucket-mib': {
    type: 'string',
    default: '25',
    describe: 'When a bucket of overlap is full, in MiB; the first one is with 1',
    coerce: parsePositiveNumber('bucket-mib'),
  },
  ...{ ...modelFlags, size: sizeFlag('tiny') },
  ...settingFlagsOf(stepSettings),
  warmup: changedFlag('warmup', { default: '3' }),
  peer: stepFlags.peer,
  ...sweepFlags,
} as const;

export const ddpCommand = defineCommand({
  flags,
  examples: [
    ['roofline ddp', 'the three modes of tiny on two ranks: on GPUs if there are two, else on the CPU'],
    ['roofline ddp --nproc 1,2,4 --size tiny,small --out results/ddp', 'a sweep; again to resume it'],
    ['roofline ddp --peer torch', "PyTorch's DistributedDataParallel for comparison, in turn"],
    ['roofline ddp --optimizer whole,sharded --mode overlap', "memory by rank, with AdamW's state split too"],
    ['roofline ddp --backend nccl --nproc 2 --size xl --dtype bfloat16', 'on two GPUs'],
  ],
  async run(args) {
    const swept = sweptBy(ddpSwept, args);
    const { device } = args;
    const backend = await chooseBackend({ given: args.backend, device, ranks: Math.max(...swept.worldSize) });
    await requireBackend(backend);
    const { runBenchmark } = await import('../run-benchmark.ts');
    const { ddpBenchmark } = await import('./benchmark.ts');
    const models = await chooseModels(args, 'tiny');
    const peer = args.peer === undefined ? null : await showWhile('Looking for PyTorch', findPeer);
    const options = sweepOptions(args, 'ddp');
    const { exitCode, records, isKept } = await runBenchmark(ddpBenchmark, {
      parameters: () => ({
        ...{ model: models, ...swept, ...settingsBy(stepSettings, args) },
        ...{ backend, peer },
        bucketBytes: Math.min(Math.ceil(args['bucket-mib'] * mebibyte), Number.MAX_SAFE_INTEGER),
      }),
      device: backend === 'nccl' ? 'cuda' : 'cpu',
      dtypes: null,
      ...options,
    });
    if (!isKept) return exitCode;
    const { writeDdpTraces } = await import('./write-traces.ts');
    for (const path of writeDdpTraces(records, options.out))
      tell(`Trace: ${path} (open in ui.perfetto.dev).`);
    return exitCode;
  },
});
