import { formatDuration, formatRatio } from '@roofline/reports';
import { measuredOf } from '../../../report/measurement.ts';
import { valuesInWords, type NamedValue } from '../../../report/values-in-words.ts';
import { stepNames } from '../../e2e/parameters.ts';
import type { CompileResult } from '../result.ts';
import type { CompileMeasurement } from './tables.ts';

type Programs = readonly CompileMeasurement[];

function valuesOf(
  cells: Programs,
  value: (result: CompileResult) => number | null | undefined,
): NamedValue[] {
  const names = stepNames(cells);
  return measuredOf(cells).flatMap(({ cell, result }) => {
    const found = value(result);
    return found === null || found === undefined ? [] : [{ name: names.name(cell), value: found }];
  });
}

const inTime = (ms: number) => formatDuration(ms);

/** How many kernels fusing leaves, where it leaves fewer. */
export function kernelFinding(cells: Programs): string[] {
  const kernels = valuesOf(cells, ({ nodesBefore, nodes }) =>
    nodes && nodesBefore ? nodes / nodesBefore : null,
  );
  if (kernels.every(({ value }) => value >= 1)) return [];
  return [`Fusing leaves ${valuesInWords(kernels, (ratio) => formatRatio(ratio))} of the kernels of a step.`];
}

/** How much memory a program works in, compared with what its ops hold when run one by one; on the CPU it plans none. */
export function arenaFinding(cells: Programs): string[] {
  const shares = valuesOf(cells, ({ arenaBytes, eagerPeakBytes }) =>
    arenaBytes > 0 && eagerPeakBytes > 0 ? arenaBytes / eagerPeakBytes : null,
  );
  if (shares.length === 0) return [];
  return [
    `A program works in ${valuesInWords(shares, (ratio) => formatRatio(ratio))} of the memory of its ops run eagerly.`,
  ];
}

export function compileFinding(cells: Programs): string[] {
  const compiling = valuesOf(cells, ({ compilation }) => compilation.durationMs);
  const cold = valuesOf(cells, ({ compileTimes }) => compileTimes?.coldMs);
  const warm = valuesOf(cells, ({ compileTimes }) => compileTimes?.warmMs);
  if (compiling.length === 0) return [];
  const apart =
    cold.length === 0
      ? ''
      : `; with no kernel compiled yet ${valuesInWords(cold, inTime)}, with all of them in the cache ` +
        valuesInWords(warm, inTime);
  return [`Compiling takes ${valuesInWords(compiling, inTime)}${apart}.`];
}
