import {
  formatDuration,
  type Block,
  type Drawing,
  type Report,
  type Section,
  type Table,
} from '@roofline/reports';
import { parametersOf, type Parameters } from '../parameters/parameter.ts';
import type { JsonObject } from '../records/json.ts';
import { tableOf } from '../report/declared-table.ts';
import type { Measured, Measurement } from '../report/measurement.ts';
import { reportHead } from '../report/report-head.ts';
import { plotsOf, seriesOf } from '../report/series.ts';
import { spreadNotes } from '../report/spread-notes.ts';
import { peakColumn, roofColumns, timeColumns } from '../report/standard-columns.ts';
import { listSome, statusInWords, valuesInWords } from '../report/values-in-words.ts';
import type { BenchmarkDefinition, FindingsOf, Measurements } from './definition.ts';

/** What decides how records are shown. */
export type Shown<C extends JsonObject, R extends JsonObject> = Omit<
  BenchmarkDefinition<never, C, never, R>,
  'cell' | 'parameters' | 'settings' | 'expand'
> & { readonly cellParameters: Parameters };

export function presentTable<C extends JsonObject, R extends JsonObject>(
  shown: Shown<C, R>,
  cells: Measurements<C, R>,
): Table {
  if (shown.table) return shown.table(cells);
  const { name: id, title, cellParameters, columns = [] } = shown;
  const parameters = parametersOf(
    cellParameters,
    cells.map(({ cell }) => cell),
  );
  const times = timeColumns('Time', 'Mean and standard deviation over the samples.');
  const all = [...times, ...roofColumns, peakColumn, ...columns];
  // Only rows with a result are asked for values.
  return tableOf({ id, title, parameters, columns: all }, cells as readonly Measured<C, R>[]);
}

/** What was found, and how many cells could not be measured. */
export function presentFindings<C extends JsonObject, R extends JsonObject>(
  { findings = [timeFinding] }: Shown<C, R>,
  cells: Measurements<C, R>,
): string[] {
  const said = findings as readonly FindingsOf<C, R>[];
  return [...said.flatMap((each) => each(cells)), ...unmeasuredFinding(cells)];
}

export function presentReport<C extends JsonObject, R extends JsonObject>(
  shown: Shown<C, R>,
  cells: Measurements<C, R>,
): Report {
  const { claim = shown.title, chart } = shown.lead?.(cells) ?? {};
  const records = cells.map(({ record }) => record);
  const sections = shown.sections?.flatMap((each) => sectionsOf(each, cells)) ?? [
    resultSection(shown, cells),
  ];
  return {
    ...reportHead(claim, records, shown.settingParameters),
    summary: presentFindings(shown, cells),
    ...(chart && { chart }),
    sections: chart ? sections.flatMap((section) => withoutDrawing(section, chart)) : sections,
  };
}

/** What stands above the report is not shown twice; a section of nothing else is left out. */
function withoutDrawing(section: Section, { id }: Drawing): Section[] {
  const blocks = section.blocks.filter((block) => block.kind === 'note' || block.id !== id);
  return blocks.length === 0 && section.blocks.length > 0 ? [] : [{ ...section, blocks }];
}

function sectionsOf<C extends JsonObject, R extends JsonObject>(
  declared: NonNullable<Shown<C, R>['sections']>[number],
  cells: Measurements<C, R>,
): readonly Section[] {
  if (typeof declared === 'function') return declared(cells);
  const blocks = declared.blocks.flatMap((each) => each(cells));
  if (blocks.length === 0) return [];
  const { id, title, text = [] } = declared;
  const prose = typeof text === 'function' ? text(cells) : text;
  return [{ id, title, ...(prose.length > 0 && { text: [...prose] }), blocks }];
}

function resultSection<C extends JsonObject, R extends JsonObject>(
  shown: Shown<C, R>,
  cells: Measurements<C, R>,
): Section {
  const blocks: Block[] = [
    presentTable(shown, cells),
    ...spreadOfTimes(cells),
    ...timePlots(shown.name, cells),
  ];
  // The table's id is the benchmark's name, whatever that is.
  return { id: `${shown.name}-results`, title: 'Results', blocks };
}

type AnyCells = readonly Measurement<JsonObject, unknown>[];

/** Warns of times that scatter, or were taken before a cell was warm. */
export function spreadOfTimes(cells: AnyCells): Block[] {
  const timed = cells.filter(({ time }) => time);
  return spreadNotes(timed.map(({ name, samplesMs }) => ({ name, samplesMs: [samplesMs] })));
}

function timeFinding(cells: AnyCells): string[] {
  const medians = cells.flatMap(({ name, time }) => (time ? [{ name, value: time.median }] : []));
  if (medians.length === 0) return [];
  return [`The median time is ${valuesInWords(medians, (ms) => formatDuration(ms))}.`];
}

function unmeasuredFinding(cells: AnyCells): string[] {
  const unmeasured = cells.filter(({ record }) => record.status !== 'ok');
  if (unmeasured.length === 0 || unmeasured.length === cells.length) return [];
  const names = listSome(unmeasured.map(({ name, record }) => `${name} (${statusInWords(record.status)})`));
  return [`${unmeasured.length} of ${cells.length} cells could not be measured: ${names}.`];
}

/** One bar a cell, and next to it its floor where that is known. */
function timePlots(benchmark: string, cells: AnyCells): Block[] {
  if (cells.every(({ time }) => time === null)) return [];
  const series = seriesOf(
    {
      x: ({ name }) => name,
      y: {
        time: ({ time }) =>
          time ? { y: time.median, low: time.min, high: time.max } : { y: null, note: 'not timed' },
        floor: ({ floorMs }) => floorMs,
      },
    },
    cells,
  );
  return plotsOf({
    id: `${benchmark}-times`,
    title: 'Time by cell',
    caption: 'Median; error bars from the least to the most.',
    x: { label: 'Cell', scale: 'category' },
    y: { label: 'Time', unit: 'ms', scale: 'linear' },
    marks: 'bar',
    series,
  });
}
