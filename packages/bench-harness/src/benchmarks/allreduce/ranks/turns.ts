import { z } from 'zod';
import { cellError } from '../../../records/record.ts';
import { collectiveDTypes, collectiveOps, placements } from '../operations.ts';

/** What ranks are asked for, all of them the same at once. */
export const turnRequest = z.discriminatedUnion('command', [
  /** Makes the tensors of an op, with `count` elements to a piece. */
  z.object({
    command: z.literal('prepare'),
    op: z.enum(collectiveOps),
    count: z.int().nonnegative(),
    dtype: z.enum(collectiveDTypes),
  }),
  z.object({
    command: z.literal('sample'),
    placement: z.enum(placements),
    warmup: z.int(),
    iterations: z.int(),
  }),
  /** Runs once with known values, and counts what is wrong. */
  z.object({ command: z.literal('check'), placement: z.enum(placements) }),
  z.object({ command: z.literal('end') }),
]);
export type TurnRequest = z.infer<typeof turnRequest>;

export const turnReply = z.object({
  /** Milliseconds of each call. */
  samplesMs: z.array(z.number()).optional(),
  wrong: z.int().optional(),
  error: cellError.optional(),
});
export type TurnReply = z.infer<typeof turnReply>;

/** Ranks of one side, which take turns with those of another. */
export interface Ranks {
  /** What each rank answers, in their order. Throws where one fails. */
  ask(request: TurnRequest): Promise<TurnReply[]>;
  end(): Promise<void>;
}
