import type { RooflinePlot } from '@roofline/reports';
import { ceilingsSpread, dtypes, type BenchmarkDType, type Ceilings } from '../measuring/ceilings.ts';

/** The label of the ceiling of a dtype's matrix products. */
export function ceilingLabel(dtype: BenchmarkDType): string {
  return `${dtype} products`;
}

/** A device's measured ceilings as the roof of a plot: those of the dtypes that are asked for and were measured. */
export function deviceRoof(
  ceilings: Ceilings,
  wanted: Iterable<string>,
): Pick<RooflinePlot, 'ceilings' | 'bandwidth' | 'spread'> {
  const names = new Set(wanted);
  const measured = dtypes.flatMap((dtype) => {
    const flopsPerSecond = ceilings.matmulFlopsPerSecond[dtype];
    return flopsPerSecond !== undefined && names.has(dtype)
      ? [{ label: ceilingLabel(dtype), flopsPerSecond }]
      : [];
  });
  return {
    ceilings: measured,
    bandwidth: { label: 'copies', bytesPerSecond: ceilings.copyBytesPerSecond },
    spread: ceilingsSpread(ceilings),
  };
}
