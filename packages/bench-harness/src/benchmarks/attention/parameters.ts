import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { count, shapeParameters } from '../../attention/shape.ts';
import { executions } from '../../execution/kinds.ts';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import type { TorchAttention } from '../../attention/peer-kinds.ts';
import { peerSetting } from '../../peer/peer-setting.ts';

const { heads: _, mask: __, dtype, ...lengths } = shapeParameters;

/** The parameters of a cell: an attention, how it runs, and a shape. There is no number of heads: it is one. */
export const attentionParameters = {
  attention: parameter(z.enum(attentionKinds), {
    emphasis: 'strong',
    flag: {
      default: 'plain,flash',
      describe: 'In separate ops, by the kernels of @roofline/flash-attn, or its algorithm in ops',
    },
  }),
  ...lengths,
  dtype: { ...dtype, flag: { ...dtype.flag!, default: 'float32' } },
  execution: parameter(z.enum(executions).default('eager'), {
    ...{ column: 'swept', usual: 'eager' },
    flag: { default: 'eager', describe: 'Run passes op by op, or as compiled programs' },
  }),
};
export const attentionCell = cellSchema(attentionParameters);
export type AttentionCell = z.infer<typeof attentionCell>;

/** Passes of each kind; how many of them, if not given, depends on the device. */
export const attentionPasses = {
  warmup: parameter(z.int().nonnegative(), { flag: { describe: 'Passes before those that count' } }),
  steps: parameter(count, { flag: { describe: 'Forward and backward passes that count' } }),
  seed: parameter(z.int().nonnegative(), { flag: { describe: 'Seed of the operands', default: '0' } }),
  /** Left out without one, as in records from before it could be asked for. */
  peer: parameter(peerSetting.unwrap().optional()),
};

const settings = cellSchema(attentionPasses);
export type AttentionSettings = z.infer<typeof settings>;

/** `flash`, or `flash, compiled`. */
export function attentionName({ attention, execution }: AttentionCell): string {
  return execution === 'eager' ? attention : `${attention}, ${execution}`;
}

/** PyTorch's attention that runs as this one does; null where there is none. */
export function torchAttentionOf({ attention, execution }: AttentionCell): TorchAttention | null {
  if (attention === 'plain') return execution === 'eager' ? 'plain' : 'compiled';
  return attention === 'flash' && execution === 'eager' ? 'flash' : null;
}

/** The defaults where the command line names nothing: on the CPU what a laptop does in a minute. */
export const attentionDefaults = {
  cuda: {
    batch: [8],
    headDimension: [16, 32, 64, 128],
    sequence: [256, 1024, 4096, 8192, 16384],
    warmup: 10,
    steps: 100,
  },
  cpu: { batch: [2], headDimension: [16, 64], sequence: [64, 128, 256, 512], warmup: 2, steps: 10 },
} as const;
