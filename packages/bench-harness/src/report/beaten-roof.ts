import { formatNumber } from '@roofline/reports';
import type { BenchmarkDType } from '../measuring/ceilings.ts';
import type { CellRecord } from '../records/record.ts';

/** What a cell reached, and the record that holds it. */
export interface Reached {
  readonly name: string;
  readonly dtype: BenchmarkDType;
  readonly flopsPerSecond: number;
  readonly record: Pick<CellRecord, 'ceilings' | 'environment'>;
}

/** A ceiling is the shortest of a few runs: an undisturbed one may be this much below the best there is. */
const TOLERANCE = 0.05;

/**
 * What no device can do: more FLOP/s than its best large products. Something else will have used the device while the
 * ceilings were measured, which are then kept for all later runs. (More bytes a second than copies move is no such sign:
 * caches allow that.)
 */
export function beatenRoofSentence(cells: readonly Reached[]): string[] {
  const beating = cells.flatMap((cell) => {
    const ceiling = cell.record.ceilings?.matmulFlopsPerSecond[cell.dtype];
    return ceiling !== undefined && cell.flopsPerSecond > ceiling * (1 + TOLERANCE)
      ? [{ cell, ceiling }]
      : [];
  });
  const [most] = beating.toSorted(
    (a, b) => b.cell.flopsPerSecond / b.ceiling - a.cell.flopsPerSecond / a.ceiling,
  );
  if (!most) return [];
  const { cell, ceiling } = most;
  const { label } = cell.record.environment.device;
  return [
    `**Floors and shares of the roof are wrong here**: ${cell.name} reaches ${rate(cell.flopsPerSecond)}, and what was ` +
      `measured as the ceiling of ${cell.dtype} products is ${rate(ceiling)}. Something else may have used the device meanwhile: ` +
      `\`roofline doctor --device ${label} --ceilings\` measures it again for the next runs.`,
  ];
}

function rate(flopsPerSecond: number): string {
  return `${formatNumber(flopsPerSecond / 1e12, 3)} TFLOP/s`;
}
