import { fitLatencyBandwidth, type LatencyBandwidth } from '../../../measuring/latency-bandwidth.ts';
import { countedBytes, factsOf } from '../operations.ts';
import { mainOf, type CollectiveSide } from './measured.ts';

/** The fit of sides that differ only in size, and the bus bandwidth that follows. */
export function fitOf(
  sides: readonly CollectiveSide[],
): (LatencyBandwidth & { readonly busBytesPerSecond: number }) | null {
  const points = sides.flatMap((side) => {
    const main = mainOf(side);
    return main ? [{ bytes: countedBytes(side.cell), timeMs: main.timeMs }] : [];
  });
  const fit = fitLatencyBandwidth(points);
  const [first] = sides;
  if (!fit || !first) return null;
  const { op, ranks } = first.cell;
  return { ...fit, busBytesPerSecond: fit.bytesPerSecond * factsOf[op].busFactor(ranks) };
}
