import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { count, shapeParameters } from '../../attention/shape.ts';
import { executions } from '../../execution/kinds.ts';
import { dtypes } from '../../measuring/ceilings.ts';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';

/** The whole sweep: every combination of the lists is a cell. There is no number of heads: it is one. */
export const attentionSweep = z.object({
  attentions: z.array(z.enum(attentionKinds)).min(1),
  batches: z.array(count).min(1),
  headDimensions: z.array(count).min(1),
  sequences: z.array(count).min(1),
  dtypes: z.array(z.enum(dtypes)).min(1),
  /** Default: eager only. */
  executions: z.array(z.enum(executions)).min(1).optional(),
  /** Forward and backward passes that run before those that count. */
  warmup: z.int().nonnegative(),
  /** Passes that count, of each kind. */
  steps: count,
  seed: z.int().nonnegative(),
});
export type AttentionParameters = z.infer<typeof attentionSweep>;
export type AttentionSettings = Pick<AttentionParameters, 'warmup' | 'steps' | 'seed'>;

const { heads: _, mask: __, dtype, ...lengths } = shapeParameters;

/** The parameters of a cell: an attention, how it runs, and a shape. */
export const attentionParameters = {
  attention: parameter(z.enum(attentionKinds), { emphasis: 'strong' }),
  ...lengths,
  dtype,
  execution: parameter(z.enum(executions).default('eager'), { column: 'swept', usual: 'eager' }),
};
export const attentionCell = cellSchema(attentionParameters);
export type AttentionCell = z.infer<typeof attentionCell>;

/** All combinations, short sequences first; the attentions of one shape are adjacent. */
export function expandAttentionCells(parameters: AttentionParameters): AttentionCell[] {
  return combinations({
    dtype: parameters.dtypes,
    batch: parameters.batches,
    sequence: parameters.sequences,
    headDimension: parameters.headDimensions,
    attention: parameters.attentions,
    execution: parameters.executions ?? ['eager' as const],
  });
}

/** `flash`, or `flash, compiled`. */
export function attentionName({ attention, execution }: AttentionCell): string {
  return execution === 'eager' ? attention : `${attention}, ${execution}`;
}

/** The defaults where the command line names nothing: on the CPU what a laptop does in a minute. */
export const attentionDefaults = {
  cuda: {
    batches: [8],
    headDimensions: [16, 32, 64, 128],
    sequences: [256, 1024, 4096, 8192, 16384],
    warmup: 10,
    steps: 100,
  },
  cpu: { batches: [2], headDimensions: [16, 64], sequences: [64, 128, 256, 512], warmup: 2, steps: 10 },
} as const;
