import { formatDuration, formatRatio, type Report, type Section } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { cellNames } from '../../../report/cell-names.ts';
import { reportHead } from '../../../report/report-head.ts';
import { valuesInWords } from '../../../report/values-in-words.ts';
import { interpretCompile, type CompileMeasurement } from './interpret.ts';
import { callTable, fusedTable, programTable } from './tables.ts';

/** The report of records of one device and one set of settings. */
export function compileReport(records: readonly CellRecord[]): Report {
  const measurements = records.map(interpretCompile);
  const names = cellNames(measurements.map(({ cell }) => cell));
  return {
    ...reportHead('Compiled programs', records),
    summary: summarySentences(measurements),
    sections: [
      {
        id: 'compiled-programs',
        title: 'Programs',
        blocks: [programTable(measurements), ...[fusedTable(measurements)].filter((table) => table !== null)],
      },
      ...measurements.flatMap(({ cell, result }, i): Section[] =>
        result
          ? [
              {
                id: `program-${i}`,
                title: `Program of ${names.name(cell)}`,
                blocks: [callTable(result.table, `calls-${i}`)],
              },
            ]
          : [],
      ),
    ],
  };
}

function summarySentences(measurements: readonly CompileMeasurement[]): string[] {
  const names = cellNames(measurements.map(({ cell }) => cell));
  const measured = measurements.flatMap(({ cell, result }) =>
    result ? [{ name: names.name(cell), result }] : [],
  );
  const told = (value: (result: (typeof measured)[number]['result']) => number | null) =>
    measured.flatMap(({ name, result }) => {
      const found = value(result);
      return found === null ? [] : [{ name, value: found }];
    });
  const kernels = told(({ nodesBefore, nodes }) => (nodes && nodesBefore ? nodes / nodesBefore : null));
  const isFused = kernels.some(({ value }) => value < 1);
  const cold = told(({ compileTimes }) => compileTimes?.coldMs ?? null);
  const warm = told(({ compileTimes }) => compileTimes?.warmMs ?? null);
  const compiling = told(({ compilation }) => compilation.durationMs);
  return [
    ...(isFused
      ? [`Fusing leaves ${valuesInWords(kernels, (ratio) => formatRatio(ratio))} as many kernels.`]
      : []),
    ...(compiling.length > 0
      ? [`Compiling takes ${valuesInWords(compiling, (ms) => formatDuration(ms))}.`]
      : []),
    ...(cold.length > 0
      ? [
          `With no kernel compiled yet it takes ${valuesInWords(cold, (ms) => formatDuration(ms))}; with all of them in the ` +
            `cache, ${valuesInWords(warm, (ms) => formatDuration(ms))}.`,
        ]
      : []),
  ];
}
