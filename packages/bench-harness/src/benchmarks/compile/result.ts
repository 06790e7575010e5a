import { z } from 'zod';
import { compilation } from '../../execution/compilation.ts';
import { sampleList } from '../../measuring/statistics.ts';

/** Calls of one op in one range, of all layers. */
const callGroup = z.object({
  op: z.string(),
  /** The ops of the function that it does the work of; empty for an op of its own. */
  members: z.array(z.string()),
  /** A path, layers by one name: `forward > layers.* > attn`. */
  range: z.string(),
  /** `float32 [4, 256, 512]`, the outputs between commas. */
  outputs: z.string(),
  calls: z.number(),
  /** Kernels, copies and fills; null where they are not known, as on the CPU. */
  nodes: z.number().nullable(),
});
export type CallGroup = z.infer<typeof callGroup>;

/** What became of a step, as `explain()` reports it, and what running it takes. */
export const compileResult = z.object({
  compilation,
  /**
   * Milliseconds that compiling takes in processes of its own, with no kernel compiled yet and with all in the cache; null
   * where that was not asked for, and on the CPU, which compiles no kernels.
   */
  compileTimes: z.object({ coldMs: z.number(), warmMs: z.number() }).nullable().default(null),
  /** Calls of the function, and those of them that are needed. */
  tracedCalls: z.number(),
  calls: z.number(),
  launches: z.number(),
  nodesBefore: z.number().nullable(),
  nodes: z.number().nullable(),
  /** Calls that are left out because an earlier one does the same. */
  repeatedCalls: z.number().default(0),
  bytesInRegisters: z.number(),
  carriedCasts: z.number().default(0),
  carriedBytes: z.number().default(0),
  /** Products that add to something, and those that are parts of another one. */
  accumulatedProducts: z.number().default(0),
  mergedProducts: z.number().default(0),
  multipliedGradients: z.number().default(0),
  callsBeside: z.number().default(0),
  /** Bytes of operands that merged products do not read again. */
  operandBytesSaved: z.number().default(0),
  arenaBytes: z.number(),
  eagerPeakBytes: z.number(),
  table: z.array(callGroup),
  /** Milliseconds of each step: between two events on the device, and until the host may go on. */
  deviceMs: sampleList,
  hostMs: sampleList,
});
export type CompileResult = z.infer<typeof compileResult>;
