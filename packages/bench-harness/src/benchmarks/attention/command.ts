import type { Flags } from '../../cli/command.ts';
import { UsageError } from '../../errors.ts';
import { chooseModels, modelFlags } from '../../model/flags.ts';
import { askedPeer, peerChoice } from '../../cli/flags/peer-flag.ts';
import { settingFlagsOf, settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { attentionDefaults, attentionParameters, attentionPasses } from './parameters.ts';

const parameterFlags: Flags = { ...sweptFlagsOf(attentionParameters), ...settingFlagsOf(attentionPasses) };

/** Of what is not given; it depends on the device. */
const defaults: Flags = Object.fromEntries(
  Object.entries({
    batch: 'batch',
    'head-dim': 'headDimension',
    sequence: 'sequence',
    steps: 'steps',
    warmup: 'warmup',
  } as const).map(([name, key]) => {
    const [onGpu, onCpu] = [attentionDefaults.cuda[key], attentionDefaults.cpu[key]].map(String);
    const flag = parameterFlags[name]!;
    return [name, { ...flag, describe: `${flag.describe}; if not given ${onGpu}, on the CPU ${onCpu}` }];
  }),
);

export const attentionCommand = benchmarkCommand('attention', {
  flags: {
    ...{ ...parameterFlags, ...defaults },
    peer: {
      ...peerChoice,
      describe:
        'Time the same passes of PyTorch in turn with ours: plain attention eager or by torch.compile, and its FlashAttention',
    },
    model: {
      ...modelFlags.model,
      describe: 'Models of Hugging Face whose head dimensions to take: folders or config.json',
    },
  },
  examples: [
    ['roofline attention', 'plain and flash, forward and backward; on the CPU in a form for laptops'],
    ['roofline attention --dtype float32,bfloat16 --out results/attention', 'both dtypes; again to resume'],
    ['roofline attention --attention flash,tiled --head-dim 64 --sequence 1024', 'the kernels, and ops'],
    ['roofline attention --execution eager,compiled', 'compiled passes, and what compiling took'],
    [
      'roofline attention --attention plain --execution eager,compiled --peer torch',
      "next to PyTorch's plain attention, eager and compiled",
    ],
    ['roofline attention --json | jq .rows', 'for other programs'],
  ],
  load: async () => (await import('./benchmark.ts')).attentionBenchmark,
  async plan(args) {
    const swept = { ...sweptBy(attentionParameters, args), ...(await headDimensions(args)) };
    const peer = await askedPeer(args);
    return {
      parameters: ({ type }) => ({
        ...structuredClone(attentionDefaults[type]),
        ...{ ...swept, ...settingsBy(attentionPasses, args), ...(peer && { peer }) },
      }),
      dtypes: swept.dtype,
    };
  },
});

/** Of the models that --model names. */
async function headDimensions(args: {
  readonly model?: readonly string[];
  readonly 'head-dim'?: unknown;
}): Promise<{ headDimension?: number[] }> {
  const { model } = args;
  if (model === undefined) return {};
  if (args['head-dim'] !== undefined)
    throw new UsageError('--model and --head-dim both say which head dimension; leave one out.');
  const models = await chooseModels({ model: [...model] }, 'small');
  const dimensions = models.map(({ shape }) => shape.headDimension ?? shape.modelDimension / shape.heads);
  return { headDimension: [...new Set(dimensions)] };
}
