import { z } from 'zod';
import { attentionKinds } from '../../attention/kinds.ts';
import { attentionShape, count, describeShape } from '../../attention/shape.ts';
import { executions } from '../../execution/kinds.ts';
import { dtypes } from '../../measuring/ceilings.ts';

/** The whole sweep: every combination of the lists is a cell. There is no number of heads: it is one. */
export const attentionParameters = z.object({
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
export type AttentionParameters = z.infer<typeof attentionParameters>;
export type AttentionSettings = Pick<AttentionParameters, 'warmup' | 'steps' | 'seed'>;

export const attentionCell = attentionShape
  .omit({ heads: true, mask: true })
  .extend({ attention: z.enum(attentionKinds), execution: z.enum(executions).default('eager') });
export type AttentionCell = z.infer<typeof attentionCell>;

/** All combinations, short sequences first; the attentions of one shape are adjacent. */
export function expandAttentionCells(parameters: AttentionParameters): AttentionCell[] {
  const { attentions, batches, headDimensions, sequences, executions = ['eager'] } = parameters;
  return parameters.dtypes.flatMap((dtype) =>
    batches.flatMap((batch) =>
      sequences.flatMap((sequence) =>
        headDimensions.flatMap((headDimension) =>
          attentions.flatMap((attention) =>
            executions.map((execution) => ({
              ...{ attention, batch, headDimension, sequence, dtype, execution },
            })),
          ),
        ),
      ),
    ),
  );
}

/** `flash · d 64 · sequence 1024 · batch 8 · float32`, and `compiled` where it is. */
export function describeAttentionCell(cell: AttentionCell): string {
  const words = [cell.attention, describeShape({ ...cell, heads: 1 })];
  return [...words, ...(cell.execution === 'eager' ? [] : [cell.execution])].join(' · ');
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
