import { z } from 'zod';
import { anyNumber, checkArgument } from '../check-argument.ts';
import { ArgumentError } from '../errors.ts';

export const dtypes = ['float32', 'bfloat16', 'float16'] as const;
export type BenchmarkDType = (typeof dtypes)[number];

export function isBenchmarkDType(name: string): name is BenchmarkDType {
  return (dtypes as readonly string[]).includes(name);
}

const fraction = z.number().min(0).max(1);

/** What the device reaches at its best: the roof that every measured time is compared with. */
export const ceilingsSchema = z.object({
  /** FLOP/s of the best large square matrix product, of several sizes and layouts, for each dtype that was measured. */
  matmulFlopsPerSecond: z.partialRecord(z.enum(dtypes), z.number().positive()),
  /** Bytes read plus bytes written, each second, by the best of several large copies. */
  copyBytesPerSecond: z.number().positive(),
  /** By what part of each the median of its repeated runs falls short of the best; older records do not have it. */
  spread: z
    .object({ matmulFlopsPerSecond: z.partialRecord(z.enum(dtypes), fraction), copyBytesPerSecond: fraction })
    .optional(),
});
/** The ceilings of a device: see `roofline doctor --ceilings`. */
export type Ceilings = z.infer<typeof ceilingsSchema>;

/** A machine that was disturbed while it was measured must not put half of all work at its roof. */
const LARGEST_SPREAD = 0.05;

/** The largest spread among the ceilings, up to 5 %; 0 where it is not known. */
export function ceilingsSpread(ceilings: Ceilings): number {
  return Math.min(largestSpread(ceilings), LARGEST_SPREAD);
}

/** The same, however large. */
export function largestSpread({ spread }: Ceilings): number {
  if (!spread) return 0;
  return Math.max(spread.copyBytesPerSecond, ...Object.values(spread.matmulFlopsPerSecond));
}

/** Work of one phase: its floating-point operations and the fewest bytes it must move. */
export interface PhaseWork {
  readonly flops: number;
  readonly bytes: number;
}

const someWork = z.array(z.object({ flops: anyNumber, bytes: anyNumber }));

/**
 * The least time in which a phase could run under the ceilings (Williams, Waterman and Patterson, "Roofline",
 * 2009): whichever of arithmetic and memory traffic takes longer. Phases follow one another, so theirs add up.
 * Null where the ceiling of this dtype was not measured. Work that only moves bytes needs no dtype. Throws an ArgumentError for
 * operations without one.
 */
export function floorMs(
  phases: readonly PhaseWork[],
  ceilings: Ceilings,
  dtype?: BenchmarkDType,
): number | null {
  checkArgument('floorMs', 'phases', phases, someWork);
  checkArgument('floorMs', 'ceilings', ceilings, ceilingsSchema);
  checkArgument('floorMs', 'dtype', dtype, z.enum(dtypes).optional());
  const calculates = phases.some(({ flops }) => flops !== 0);
  if (calculates && dtype === undefined)
    throw new ArgumentError(
      "floorMs: phases with flops need the dtype of their products, such as 'float32'.",
    );
  const peak = calculates ? ceilings.matmulFlopsPerSecond[dtype!] : Infinity;
  if (peak === undefined) return null;
  const seconds = phases.map(({ flops, bytes }) =>
    Math.max(flops / peak, bytes / ceilings.copyBytesPerSecond),
  );
  return seconds.reduce((sum, each) => sum + each, 0) * 1000;
}
