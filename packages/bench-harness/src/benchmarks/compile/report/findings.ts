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
  return [`Fusing leaves ${valuesInWords(kernels, (ratio) => formatRatio(ratio))} as many kernels.`];
}

export function compileFindings(cells: Programs): string[] {
  const compiling = valuesOf(cells, ({ compilation }) => compilation.durationMs);
  const cold = valuesOf(cells, ({ compileTimes }) => compileTimes?.coldMs);
  const warm = valuesOf(cells, ({ compileTimes }) => compileTimes?.warmMs);
  return [
    ...(compiling.length > 0 ? [`Compiling takes ${valuesInWords(compiling, inTime)}.`] : []),
    ...(cold.length > 0
      ? [
          `With no kernel compiled yet it takes ${valuesInWords(cold, inTime)}; with all of them in the cache, ` +
            `${valuesInWords(warm, inTime)}.`,
        ]
      : []),
  ];
}
