import { floorMs, isBenchmarkDType, type Ceilings } from '../../../measuring/ceilings.ts';
import { summarize } from '../../../measuring/statistics.ts';
import { outermostOfEachName, totalUs, type KernelSpan, type TimedKernel } from '../kernel-spans.ts';

/** One row a kernel name, longest total first, with the columns of Nsight Systems' `cuda_gpu_kern_sum`. */
export function kernelSummary(spans: readonly KernelSpan[], ceilings: Ceilings | null): ReachedGroup[] {
  return groupsByName(spans).map((group) => ({ ...summaryOf(group, spans), ...reached(group, ceilings) }));
}

/** The same for any kernels, without what they reach. */
export function summarizeByName(kernels: readonly TimedKernel[]): KernelGroup[] {
  return groupsByName(kernels).map((group) => summaryOf(group, kernels));
}

/** Launches of one name, all steps together. */
export interface KernelGroup extends Durations {
  readonly name: string;
  readonly timeShare: number;
}

function groupsByName<Kernel extends TimedKernel>(kernels: readonly Kernel[]): Kernel[][] {
  const groups = [...Map.groupBy(kernels, ({ name }) => name).values()];
  return groups.sort((a, b) => totalUs(b) - totalUs(a));
}

function summaryOf(group: readonly TimedKernel[], all: readonly TimedKernel[]): KernelGroup {
  const total = totalUs(all);
  return { name: group[0]!.name, timeShare: total === 0 ? 0 : totalUs(group) / total, ...durations(group) };
}

/**
 * One row for each range name and kernel name, with the columns of Nsight Systems' `nvtx_kern_sum`: a kernel counts
 * in every range around it.
 */
export function rangeSummary(
  spans: readonly KernelSpan[],
  { pid, tid }: { readonly pid: number; readonly tid: number },
) {
  const byRange = new Map<string, { openings: Set<string>; kernels: Map<string, KernelSpan[]> }>();
  for (const span of spans) {
    for (const { name, step, index } of outermostOfEachName(span.ranges)) {
      const entry = byRange.get(name) ?? { openings: new Set(), kernels: new Map() };
      byRange.set(name, entry);
      entry.openings.add(`${step}:${index}`);
      const group = entry.kernels.get(span.name);
      if (group) group.push(span);
      else entry.kernels.set(span.name, [span]);
    }
  }
  return [...byRange].flatMap(([range, { openings, kernels }]) =>
    [...kernels]
      .map(([name, group]) => ({
        range,
        pid,
        tid,
        rangeInstances: openings.size,
        ...durations(group),
        name,
      }))
      .sort((a, b) => b.totalNs - a.totalNs),
  );
}

export type Durations = ReturnType<typeof durations>;

function durations(group: readonly TimedKernel[]) {
  const { mean, median, min, max, std } = summarize(group.map(({ durationUs }) => durationUs * 1000));
  return {
    totalNs: Math.round(totalUs(group) * 1000),
    instances: group.length,
    averageNs: mean,
    medianNs: median,
    minNs: Math.round(min),
    maxNs: Math.round(max),
    stdNs: std,
  };
}

/** What launches of one name reached, where their ops state their work. */
export interface ReachedGroup extends KernelGroup {
  /** Of matrix products. */
  readonly teraflopsPerSecond?: number;
  readonly gigabytesPerSecond?: number;
  /** The least time under the ceilings over theirs; null where those are not known. */
  readonly roofShare?: number | null;
}

function reached(
  group: readonly KernelSpan[],
  ceilings: Ceilings | null,
): Omit<ReachedGroup, keyof KernelGroup> {
  const known = group.filter(({ work }) => work !== null);
  const seconds = totalUs(known) / 1e6;
  if (seconds === 0) return {};
  const flops = known.reduce((sum, { work }) => sum + work!.flops, 0);
  const bytes = known.reduce((sum, { work }) => sum + work!.bytes, 0);
  const isProduct = known.some(({ op }) => op!.isMatrixProduct);
  return {
    ...(isProduct ? { teraflopsPerSecond: flops / seconds / 1e12 } : {}),
    gigabytesPerSecond: bytes / seconds / 1e9,
    roofShare: roofShare(known, ceilings),
  };
}

function roofShare(known: readonly KernelSpan[], ceilings: Ceilings | null): number | null {
  if (ceilings === null) return null;
  let sumMs = 0;
  for (const span of known) {
    const each = leastMs(span, ceilings);
    if (each === null) return null;
    sumMs += each;
  }
  return (sumMs * 1000) / totalUs(known);
}

/** Null where the ceiling of the products' dtype is not known. What multiplies no matrices is bound by memory. */
function leastMs({ work, op }: KernelSpan, ceilings: Ceilings): number | null {
  if (!op!.isMatrixProduct) return (work!.bytes / ceilings.copyBytesPerSecond) * 1000;
  return isBenchmarkDType(op!.dtype) ? floorMs([work!], ceilings, op!.dtype) : null;
}
