import { formatPercent, type RooflinePlot, type RooflinePoint } from '@roofline/reports';
import { isBenchmarkDType } from '../../../measuring/ceilings.ts';
import { ceilingLabel, deviceRoof } from '../../../report/device-roof.ts';
import { profiledOf, type ProfileMeasurement } from '../interpret.ts';
import { phaseOf, totalUs, type KernelSpan } from '../kernel-spans.ts';

/**
 * The kernels under the roof, one dot for each name in each phase, by its time in a step; null where the ceilings are
 * not known, or no kernel's arithmetic is.
 */
export function kernelRoofline(profile: ProfileMeasurement, id: string): RooflinePlot | null {
  const { cell, record } = profile;
  const profiled = profiledOf(profile);
  if (profiled === null || record.ceilings === null) return null;
  const { selected, result } = profiled;
  const drawn = selected.filter(({ work }) => work !== null && work.flops > 0 && work.bytes > 0);
  const roof = deviceRoof(record.ceilings, [cell.dtype, ...productDTypes(drawn)]);
  if (drawn.length === 0 || roof.ceilings.length === 0) return null;
  const labels = new Set(roof.ceilings.map(({ label }) => label));
  const groups = Map.groupBy(drawn, (span) => JSON.stringify([phaseOf(span), span.name, span.op!.dtype]));
  const points = [...groups.values()].map((group): RooflinePoint => {
    const { name, op } = group[0]!;
    const ceiling = isBenchmarkDType(op!.dtype) ? ceilingLabel(op!.dtype) : '';
    const steps = result.steps.length;
    return {
      name,
      category: phaseOf(group[0]!),
      flops: sumOf(group, 'flops') / steps,
      bytes: sumOf(group, 'bytes') / steps,
      durationMs: totalUs(group) / 1000 / steps,
      ...(labels.has(ceiling) ? { ceiling } : {}),
      note: `${op!.name}, ${op!.dtype}, ${group.length / steps} a step`,
    };
  });
  const share = totalUs(drawn) / totalUs(selected);
  return {
    kind: 'roofline',
    id,
    title: 'Kernels under the roof',
    caption:
      `A dot is all launches of a kernel in a phase: its area is their time in a step. These are ${formatPercent(share)} ` +
      'of the kernel time; the rest copies, fills or prepares, without arithmetic of its own. Bytes are the fewest ' +
      'that each op must move: a dot above the slope found them in a cache.',
    ...roof,
    points,
  };
}

function sumOf(spans: readonly KernelSpan[], key: 'flops' | 'bytes'): number {
  return spans.reduce((sum, { work }) => sum + work![key], 0);
}

/** Those of the matrix products: under autocast some may stay in float32. */
function productDTypes(spans: readonly KernelSpan[]): Set<string> {
  return new Set(spans.flatMap(({ op }) => (op!.isMatrixProduct ? [op!.dtype] : [])));
}
