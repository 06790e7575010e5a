import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';

const bytes = z.number();

/** Memory of one purpose: an op in a range, over all layers. */
const share = z.object({ what: z.string(), bytes, count: z.number() });
export type MemoryShare = z.infer<typeof share>;

const described = z.object({
  /** The op. */
  op: z.string(),
  /** The ranges that were open, outermost first, as a path. */
  range: z.string(),
  bytes,
  /** `float32 [4, 256, 512]`; empty for memory without a tensor. */
  tensor: z.string(),
});

const allocation = described.extend({
  phase: z.string().nullable(),
  /** `name (file:line)`, innermost first. */
  stack: z.array(z.string()),
});
export type LargeAllocation = z.infer<typeof allocation>;

const phasePeak = z.object({ phase: z.string(), bytes, live: z.array(share) });
export type PhasePeak = z.infer<typeof phasePeak>;

/** Stacks and labels are held once; the tuples point to them. Times in microseconds. */
const timeline = z.object({
  labels: z.array(z.string()),
  categories: z.array(z.string()),
  stacks: z.array(z.array(z.string())),
  allocations: z.array(
    z.tuple([
      z.number().describe('label'),
      z.number().describe('category'),
      bytes,
      z.number().describe('startUs'),
      z.number().nullable().describe('endUs'),
      z.number().describe('stack'),
    ]),
  ),
  reserved: z.array(z.tuple([z.number(), bytes])),
  /** Allocations too small to be kept here, and the largest of them. */
  omitted: z.object({ count: z.number(), largestBytes: bytes }),
});
export type RecordedTimeline = z.infer<typeof timeline>;

/** What recording one step of a cell gives. */
export const memoryResult = z.object({
  parameterCount: z.number(),
  allocationCount: z.number(),
  /** As the device counts them, over the recorded step. */
  peakAllocatedBytes: bytes,
  peakReservedBytes: bytes,
  /** What was held before the step. */
  weightBytes: bytes,
  /** What a compiled step works in on a GPU; 0 for eager ones. */
  arenaBytes: bytes.default(0),
  otherHeldBytes: bytes,
  phases: z.array(phasePeak),
  largest: z.array(allocation),
  /** What the tape keeps of one block for the backward pass; null where there is no backward pass. */
  savedByBlock: z
    .object({
      block: z.string(),
      /** Of the activations, and along with them of the weights in a lower dtype. */
      bytes,
      weightCastBytes: bytes,
      count: z.number(),
      contributors: z.array(described),
    })
    .nullable(),
  /** What the backward pass leaves of one block: the gradients of its parameters. Null without one, and in older records. */
  gradientsOfBlock: z.object({ bytes, count: z.number() }).nullable().default(null),
  /** What the tape keeps of the whole step's activations. */
  savedBytes: bytes,
  /** batch × context × model dimension × bytes of the dtype that the running model's blocks give out. */
  residual: z.object({ dtype: z.string(), bytes }),
  timeline,
  /** Wall clock of whole steps in milliseconds, in turn with recording off and on. */
  overhead: z.object({ offMs: sampleList, onMs: sampleList }),
  /** The file next to the records that PyTorch's memory_viz opens; null where none was asked for. */
  snapshot: z.string().nullable(),
});
export type MemoryResult = z.infer<typeof memoryResult>;
