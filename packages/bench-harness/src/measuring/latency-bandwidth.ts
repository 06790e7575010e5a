/** t = α + β · bytes: what a call costs whatever its size, and what each byte adds. */
export interface LatencyBandwidth {
  readonly latencyMs: number;
  /** 1 / β. */
  readonly bytesPerSecond: number;
}

/**
 * Fits the α-β model (Hockney, "The communication challenge for MPP", 1994) by least squares of the relative errors, so
 * that small messages count as much as large ones. No latency is below 0. Null for fewer than two sizes, or times that do
 * not grow with them.
 */
export function fitLatencyBandwidth(
  points: readonly { readonly bytes: number; readonly timeMs: number }[],
): LatencyBandwidth | null {
  if (new Set(points.map(({ bytes }) => bytes)).size < 2) return null;
  let [w, wx, wxx, wt, wxt] = [0, 0, 0, 0, 0];
  for (const { bytes, timeMs } of points) {
    const weight = 1 / timeMs ** 2;
    w += weight;
    wx += weight * bytes;
    wxx += weight * bytes * bytes;
    wt += weight * timeMs;
    wxt += weight * bytes * timeMs;
  }
  const slope = (w * wxt - wx * wt) / (w * wxx - wx * wx);
  const latencyMs = (wt - slope * wx) / w;
  const msPerByte = latencyMs < 0 ? wxt / wxx : slope;
  if (!(msPerByte > 0)) return null;
  return { latencyMs: Math.max(0, latencyMs), bytesPerSecond: 1000 / msPerByte };
}
