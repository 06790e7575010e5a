import type { Table } from '@roofline/reports';
import { isBenchmarkDType, type Ceilings } from '../../../measuring/ceilings.ts';
import { column } from '../../../report/standard-columns.ts';
import { busyUs, type KernelSpan } from '../kernel-spans.ts';
import { profileTables, type Profiles } from './profile-table.ts';

/**
 * Microseconds that a kernel needs of each unit at its ceiling, and no more than it took: the cache may have spared it traffic.
 * Null where the ceiling of its products is not known.
 */
function needsOf({ work, op, durationUs }: KernelSpan, ceilings: Ceilings) {
  const least = (amount: number, perSecond: number) => Math.min((amount / perSecond) * 1e6, durationUs);
  const memoryUs = work === null ? 0 : least(work.bytes, ceilings.copyBytesPerSecond);
  if (work === null || !op!.isMatrixProduct) return { tensorUs: 0, memoryUs };
  const peak = isBenchmarkDType(op!.dtype) ? ceilings.matmulFlopsPerSecond[op!.dtype] : undefined;
  return peak === undefined ? null : { tensorUs: least(work.flops, peak), memoryUs };
}

/**
 * How long kernels of a step ran, how long they needed each unit at its ceiling, and how long both must have worked at once:
 * what the two need beyond the time of the kernel, or of all kernels, where those of several branches run at the same time.
 * Null where a ceiling is not known. Means over the steps, since medians would not add up.
 */
export function unitTimes(spans: readonly KernelSpan[], steps: number, ceilings: Ceilings) {
  let [tensorUs, memoryUs, bothUs] = [0, 0, 0];
  for (const span of spans) {
    const needs = needsOf(span, ceilings);
    if (needs === null) return null;
    tensorUs += needs.tensorUs;
    memoryUs += needs.memoryUs;
    bothUs += Math.max(0, needs.tensorUs + needs.memoryUs - span.durationUs);
  }
  const bySteps = [...Map.groupBy(spans, ({ step }) => step).values()];
  const ranUs = bySteps.reduce((sum, each) => sum + busyUs(each), 0);
  const [busyMs, tensorMs, memoryMs, bothMs] = [
    ...[ranUs, tensorUs, memoryUs],
    Math.max(bothUs, tensorUs + memoryUs - ranUs),
  ].map((us) => us / 1000 / steps) as [number, number, number, number];
  return { busyMs, tensorMs, memoryMs, bothMs, bothShare: ranUs === 0 ? 0 : bothMs / busyMs };
}

type UnitTimes = NonNullable<ReturnType<typeof unitTimes>>;

/** What a step needs of the tensor cores and of memory, and what of it they did at once; none where no ceilings are known. */
export function unitTables(profiles: Profiles): Table[] {
  return profileTables<UnitTimes>(
    {
      ...{ id: 'units', title: 'Tensor cores and memory', saysShared: true },
      caption:
        'The time of a step in which kernels run, and what they need of each unit at its measured ceiling. Where the needs of ' +
        'a kernel, or of kernels of several branches, exceed their time, both units have worked at once.',
      columns: [
        column.ms('busyMs', 'Kernels run'),
        column.ms('tensorMs', 'Tensor cores', { description: 'FLOPs of products over the measured peak.' }),
        column.ms('memoryMs', 'Memory', { description: 'The fewest bytes over the measured bandwidth.' }),
        column.ms('bothMs', 'Both at once, at least', { emphasis: 'strong' }),
        column.percent('bothShare', 'Of the time'),
      ],
    },
    profiles.filter(({ result, record }) => result !== null && record.ceilings !== null),
    ({ spans, result }, { record }) => {
      const times = unitTimes(spans, result.steps.length, record.ceilings!);
      return times ? [times] : [];
    },
  );
}
