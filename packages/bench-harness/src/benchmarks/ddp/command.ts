import { ranksDeviceFlag } from '../../cli/flags/device-flag.ts';
import { askedPeer } from '../../cli/flags/peer-flag.ts';
import { settingFlagsOf, settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { parsePositiveNumber } from '../../cli/option-values.ts';
import { tell } from '../../cli/output.ts';
import { chooseBackend, requireBackend } from '../../device/require-backend.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags, sizeFlag } from '../../model/flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { torchFlag } from '../e2e/flags.ts';
import { ddpSettings, ddpSwept, sendsActivations } from './parameters.ts';

const mebibyte = 2 ** 20;
const { backend, ...settingFlags } = settingFlagsOf(ddpSettings);

export const ddpCommand = benchmarkCommand('ddp', {
  flags: {
    ...{ ...sweptFlagsOf(ddpSwept), backend: backend!, ...ranksDeviceFlag },
    'bucket-mib': {
      type: 'string',
      describe:
        'When a bucket of overlap is full, in MiB, the first one with 1; 25 if not given, or 1/64 of all gradients where that is more',
      coerce: parsePositiveNumber('bucket-mib'),
    },
    ...{ ...modelFlags, size: sizeFlag('tiny'), ...settingFlags, ...torchFlag },
  },
  examples: [
    ['roofline ddp', 'the three modes of tiny on two ranks: on GPUs if there are two, else on the CPU'],
    ['roofline ddp --nproc 1,2,4 --size tiny,small --out results/ddp', 'a sweep; again to resume it'],
    ['roofline ddp --peer torch', "PyTorch's DistributedDataParallel for comparison, in turn"],
    ['roofline ddp --optimizer whole,sharded --mode overlap', "memory by rank, with AdamW's state split too"],
    ['roofline ddp --mode overlap,fsdp', 'parameters split over the ranks, next to those that each has'],
    ['roofline ddp --mode tensor', 'layers divided over the ranks, which calculate the same tokens together'],
    [
      'roofline ddp --mode fsdp-context --context 256',
      'each sequence divided over the ranks, by ring attention',
    ],
    ['roofline ddp --backend nccl --nproc 2 --size xl --dtype bfloat16', 'on two GPUs'],
    ['roofline ddp --execution eager,compiled', 'steps as programs, with the communication in them'],
    [
      'roofline ddp --backend nccl --size 8b --context 32768 --batch 1 --dtype bfloat16 --mode fsdp --execution compiled ' +
        '--attention flash --recompute attention-kept --logits chunked --memory-budget 69GiB --peer torch',
      "a model for two GPUs, next to PyTorch's FSDP2",
    ],
  ],
  load: async () => (await import('./benchmark.ts')).ddpBenchmark,
  async plan(args) {
    const [swept, settings] = [sweptBy(ddpSwept, args), settingsBy(ddpSettings, args)];
    const ranks = Math.max(...swept.worldSize);
    const backend = await chooseBackend({ given: settings.backend, device: args.device, ranks });
    await requireBackend(backend);
    const model = await chooseModels(args, 'tiny');
    const peer = await askedPeer(args);
    const divided = swept.mode.find((mode) => sendsActivations({ mode, worldSize: ranks }));
    if (peer && divided)
      throw new UsageError(
        `--peer torch has no layers or sequences divided over ranks: leave ${divided} out of --mode, or leave out --peer.`,
      );
    const given = args['bucket-mib'];
    const bucketBytes =
      given === undefined ? null : Math.min(Math.ceil(given * mebibyte), Number.MAX_SAFE_INTEGER);
    return {
      parameters: () => ({ ...{ model, ...swept, ...settings }, backend, peer, bucketBytes }),
      device: backend === 'nccl' ? 'cuda' : 'cpu',
      dtypes: null,
    };
  },
  async written(records, out) {
    const { writeDdpTraces } = await import('./write-traces.ts');
    for (const path of writeDdpTraces(records, out)) tell(`Trace: ${path} (open in ui.perfetto.dev).`);
  },
});
