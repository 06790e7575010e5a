import { formatDuration, type Plot, type Point, type Report, type Table } from '@roofline/reports';
import type { JsonObject } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';
import { reportHead } from '../report/report-head.ts';
import { spreadNotes } from '../report/spread-notes.ts';
import { listSome, statusInWords, valuesInWords } from '../report/values-in-words.ts';
import { interpretCell, type InterpretedCell, type Told } from './interpret-cell.ts';

type Cells = readonly InterpretedCell<unknown, unknown>[];

/** A benchmark's table, a plot of its times next to their floors, and their summary. */
export function defaultReport<C extends JsonObject, R extends JsonObject>(
  definition: Told<C, R>,
  records: readonly CellRecord[],
  table: Table,
): Report {
  const { name } = definition;
  const cells: Cells = records.map((record) => interpretCell(definition, record));
  return {
    ...reportHead(definition.title, records),
    summary: [...timeSentence(cells), ...unmeasuredSentence(cells)],
    sections: [
      {
        // The table's id is the benchmark's name, whatever that is.
        id: `${name}-results`,
        title: 'Results',
        blocks: [
          table,
          ...spreadNotes(
            cells.filter(({ time }) => time).map(({ name, samplesMs }) => ({ name, samplesMs: [samplesMs] })),
          ),
          ...timePlot(name, cells),
        ],
      },
    ],
  };
}

function timeSentence(cells: Cells): string[] {
  const medians = cells.flatMap(({ name, time }) => (time ? [{ name, value: time.median }] : []));
  if (medians.length === 0) return [];
  return [`The median time is ${valuesInWords(medians, (ms) => formatDuration(ms))}.`];
}

function unmeasuredSentence(cells: Cells): string[] {
  const unmeasured = cells.filter(({ record }) => record.status !== 'ok');
  if (unmeasured.length === 0) return [];
  const names = listSome(unmeasured.map(({ name, record }) => `${name} (${statusInWords(record.status)})`));
  return [`${unmeasured.length} of ${cells.length} cells could not be measured: ${names}.`];
}

/** One bar a cell, and next to it its floor where that is known; none where nothing was timed. */
function timePlot(benchmark: string, cells: Cells): Plot[] {
  if (cells.every(({ time }) => time === null)) return [];
  const floors = cells.map(({ name, floorMs }): Point => ({ x: name, y: floorMs }));
  return [
    {
      kind: 'plot',
      id: `${benchmark}-times`,
      title: 'Time by cell',
      caption: 'Median; error bars from the least to the most.',
      x: { label: 'Cell', scale: 'category' },
      y: { label: 'Time', unit: 'ms', scale: 'linear' },
      marks: 'bar',
      series: [
        { name: 'time', points: cells.map(timePoint) },
        ...(floors.some(({ y }) => y !== null) ? [{ name: 'floor', points: floors }] : []),
      ],
    },
  ];
}

function timePoint({ name, record, time }: Cells[number]): Point {
  if (time) return { x: name, y: time.median, low: time.min, high: time.max };
  return { x: name, y: null, note: record.status === 'ok' ? 'not timed' : record.status };
}
