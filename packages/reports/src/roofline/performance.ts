import type { RooflinePlot, RooflinePoint } from '../model.ts';

/** A point's position, and the ceiling above it. */
export interface Performance {
  readonly point: RooflinePoint;
  /** FLOPs a byte. */
  readonly intensity: number;
  readonly flopsPerSecond: number;
  /** What the roof allows at this intensity. */
  readonly roofFlopsPerSecond: number;
  /** 1 is the roof. */
  readonly roofShare: number;
}

/** Every point, in the order given. */
export function performances({ points, ceilings, bandwidth }: RooflinePlot): Performance[] {
  const peaks = new Map(ceilings.map(({ label, flopsPerSecond }) => [label, flopsPerSecond]));
  const highest = Math.max(...peaks.values());
  return points.map((point) => {
    const intensity = point.flops / point.bytes;
    const flopsPerSecond = (point.flops * 1000) / point.durationMs;
    const peak = point.ceiling === undefined ? highest : peaks.get(point.ceiling)!;
    const roofFlopsPerSecond = Math.min(peak, intensity * bandwidth.bytesPerSecond);
    const roofShare = flopsPerSecond / roofFlopsPerSecond;
    return { point, intensity, flopsPerSecond, roofFlopsPerSecond, roofShare };
  });
}

/** The categories in the order in which they come; one without a name where no point has any. */
export function categoriesOf({ points }: RooflinePlot): string[] {
  const categories = [...new Set(points.map(({ category = '' }) => category))];
  return categories.length === 0 ? [''] : categories;
}

/** The unit in which rates are written: FLOP/s in trillions where the roof reaches one. */
export function rateUnit({ ceilings }: RooflinePlot): { readonly name: string; readonly size: number } {
  const highest = Math.max(...ceilings.map(({ flopsPerSecond }) => flopsPerSecond));
  return highest >= 1e12 ? { name: 'TFLOP/s', size: 1e12 } : { name: 'GFLOP/s', size: 1e9 };
}
