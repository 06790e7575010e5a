import { describe } from 'vitest';
import {
  type HostileCall,
  type HostileTable,
  describeHostileArguments,
  exempt,
} from '../../../tooling/hostile-arguments.ts';
import * as reports from '../src/index.ts';
import type {
  AllocationPlot,
  Block,
  Note,
  Plot,
  RatioPlot,
  Report,
  RooflinePlot,
  Table,
  Timeline,
} from '../src/index.ts';

type Legal = NonNullable<HostileCall['legal']>;

const words = 'a';
const numbers = '5 NaN Infinity';

const table = (): Table => ({
  kind: 'table',
  id: 'a-table',
  title: 'Times',
  caption: 'Of one step',
  columns: [
    {
      ...{ key: 'time', label: 'Time', unit: 'ms', kind: 'duration', digits: 3, align: 'right' },
      ...{ description: 'By the clock', uncertaintyKey: 'std', emphasis: 'strong', spread: 0.5 },
      unitGroup: 'times',
    } as const,
  ],
  rows: [{ time: 1, std: 2, status: 'ok', error: 'none' }],
});
const tableLegal: Legal = {
  id: words,
  title: words,
  caption: `undefined ${words}`,
  columns: '[]',
  'columns.0.key': words,
  'columns.0.label': words,
  'columns.0.unit': 'undefined',
  'columns.0.digits': 'undefined 5',
  'columns.0.align': 'undefined',
  'columns.0.description': `undefined ${words}`,
  'columns.0.uncertaintyKey': `undefined ${words}`,
  'columns.0.unitGroup': `undefined ${words}`,
  'columns.0.emphasis': 'undefined',
  'columns.0.spread': 'undefined',
  rows: '[]',
  // Without a time, and with one in a column that is not shown.
  'rows.0': '{} option',
  'rows.0.time': `undefined null ${words} ${numbers}`,
  'rows.0.std': `undefined null ${words} ${numbers}`,
  'rows.0.status': 'undefined',
  'rows.0.error': `undefined ${words}`,
};

const plot = (): Plot => ({
  kind: 'plot',
  id: 'a-plot',
  title: 'Rates',
  caption: 'By context',
  x: { label: 'Context', unit: 'tokens', scale: 'linear' },
  y: { label: 'Rate', unit: 'TFLOP/s', scale: 'linear' },
  marks: 'line',
  stacked: false,
  series: [{ name: 'ours', points: [{ x: 1, y: 2, low: 1, high: 3, note: 'warm' }] }],
  references: [{ label: 'ceiling', y: 4 }],
});
/** What its numbers may be depends on who reads them: an axis takes finite ones, a table all. */
const plotLegal = (values: string): Legal => ({
  id: words,
  title: words,
  caption: `undefined ${words}`,
  'x.label': words,
  'x.scale': 'undefined',
  'y.scale': 'undefined',
  marks: 'undefined',
  'x.unit': `undefined ${words}`,
  'y.label': words,
  'y.unit': `undefined ${words}`,
  stacked: 'undefined',
  series: '[]',
  'series.0.name': words,
  'series.0.points': '[]',
  'series.0.points.0.x': values,
  'series.0.points.0.y': `null ${values}`,
  'series.0.points.0.low': `undefined ${numbers}`,
  'series.0.points.0.high': `undefined ${numbers}`,
  'series.0.points.0.note': `undefined ${words}`,
  references: 'undefined []',
  'references.0.label': words,
  'references.0.y': values,
});
const drawn = { ...plotLegal('5') };
const listed = { ...plotLegal(numbers), 'series.0.points.0.x': `${words} ${numbers}` };

const roofline = (): RooflinePlot => ({
  kind: 'roofline',
  id: 'a-roofline',
  title: 'Kernels',
  caption: 'Of one step',
  ceilings: [{ label: 'products', flopsPerSecond: 1e12 }],
  bandwidth: { label: 'copies', bytesPerSecond: 1e11 },
  points: [
    {
      ...{ name: 'gemm', category: 'forward', flops: 1e9, bytes: 1e6, durationMs: 1 },
      ...{ ceiling: 'products', note: 'twice' },
    },
  ],
  spread: 0.5,
});
const rooflineLegal: Legal = {
  id: words,
  title: words,
  caption: `undefined ${words}`,
  'ceilings.0.label': '',
  'ceilings.0.flopsPerSecond': '5',
  'bandwidth.label': words,
  'bandwidth.bytesPerSecond': '5',
  points: '[]',
  'points.0.name': words,
  'points.0.category': `undefined ${words}`,
  'points.0.flops': '5',
  'points.0.bytes': '5',
  'points.0.durationMs': '5',
  'points.0.ceiling': 'undefined',
  'points.0.note': `undefined ${words}`,
  spread: 'undefined',
};

const timeline = (): Timeline => ({
  kind: 'timeline',
  id: 'a-timeline',
  title: 'Kernels',
  caption: 'Of one step',
  tracks: [
    { name: 'stream', slices: [{ name: 'add', startUs: 0, durationUs: 1, depth: 0, category: 'pointwise' }] },
  ],
  counters: [{ name: 'memory', unit: 'bytes', points: [[0, 1]] }],
});
const timelineLegal: Legal = {
  id: words,
  title: words,
  caption: `undefined ${words}`,
  tracks: '[]',
  'tracks.0.name': words,
  'tracks.0.slices': '[]',
  'tracks.0.slices.0.name': words,
  'tracks.0.slices.0.startUs': '5',
  'tracks.0.slices.0.durationUs': '5',
  'tracks.0.slices.0.depth': 'undefined 5',
  'tracks.0.slices.0.category': `undefined ${words}`,
  counters: 'undefined []',
  'counters.0.name': words,
  'counters.0.unit': words,
  'counters.0.points': '[]',
  'counters.0.points.0.0': '5',
};

const allocations = (): AllocationPlot => ({
  kind: 'allocations',
  id: 'a-plot-of-memory',
  title: 'Memory',
  caption: 'Of one step',
  allocations: [
    { label: 'weights', category: 'parameter', bytes: 4, startUs: 0, endUs: 5, stack: ['of a call'] },
  ],
  reserved: [[0, 8]],
});
const allocationsLegal: Legal = {
  id: words,
  title: words,
  caption: `undefined ${words}`,
  allocations: '[]',
  'allocations.0.label': words,
  'allocations.0.category': `undefined ${words}`,
  'allocations.0.bytes': '5',
  'allocations.0.startUs': '5',
  'allocations.0.endUs': 'null 5',
  'allocations.0.stack': 'undefined []',
  'allocations.0.stack.0': words,
  reserved: 'undefined []',
  'reserved.0.0': '5',
};

const note = (): Note => ({ kind: 'note', text: 'Wide spread', tone: 'warning' });
const noteLegal: Legal = { text: words, tone: 'undefined' };

const report = (block: Block): Report => ({
  title: 'Roofline',
  subtitle: 'On a test machine',
  createdAt: '2025-11-21T00:47:31.000Z',
  summary: ['Fast.'],
  environment: [{ label: 'GPU', value: 'none' }],
  sections: [{ id: 'first', title: 'First', text: ['Read this.'], blocks: [block] }],
});
const reportLegal: Legal = {
  title: words,
  subtitle: `undefined ${words}`,
  createdAt: words,
  summary: '[]',
  'summary.0': words,
  environment: '[]',
  'environment.0.label': words,
  'environment.0.value': words,
  sections: '[]',
  'sections.0.id': words,
  'sections.0.title': words,
  'sections.0.text': 'undefined []',
  'sections.0.text.0': words,
  'sections.0.blocks': '[]',
};

const under = (prefix: string, legal: Legal): Legal =>
  Object.fromEntries(Object.entries(legal).map(([place, values]) => [`${prefix}.${place}`, values]));

const ofTable: HostileCall = { args: () => [table()], legal: under('0', tableLegal), deep: [0] };
const ofDocument: HostileCall = {
  args: () => [table(), { plotPath: () => 'plot.svg' }],
  legal: { ...under('0', tableLegal), 1: 'undefined {}', '1.plotPath': 'undefined fn' },
  deep: [0],
};
const ofReport = (block: () => Block, legal: Legal): HostileCall => ({
  args: () => [report(block())],
  legal: { ...under('0', reportLegal), ...under('0.sections.0.blocks.0', legal) },
  deep: [0],
  // What cannot be drawn is said of the block.
  named: `renderHtml|renderMarkdown|renderJson|plot 'a-plot'|timeline 'a-timeline'|allocations 'a-plot-of-memory'|ratios 'some-ratios'`,
});

const size = 'undefined 5';
const ratios = (): RatioPlot => ({
  ...{ kind: 'ratios', id: 'some-ratios', title: 'Ours over theirs', caption: 'Of one step' },
  ...{ ours: 'Roofline', theirs: 'PyTorch', value: 'duration', heads: ['Model'] },
  rows: [{ names: ['small'], ours: 1, theirs: 2, low: 0.4, high: 0.6, note: 'warm' }],
});
const ratiosLegal: Legal = {
  id: words,
  title: words,
  caption: `undefined ${words}`,
  ours: words,
  theirs: words,
  'heads.0': words,
  'rows.0.names.0': words,
  'rows.0.ours': '5',
  'rows.0.theirs': '5',
  'rows.0.low': 'undefined 5',
  'rows.0.high': 'undefined 5',
  'rows.0.note': `undefined ${words}`,
};
/** A table may say that nothing was measured, an image may not. */
const ratioTableLegal: Legal = { ...ratiosLegal, 'rows.0.ours': 'null 5', 'rows.0.theirs': 'null 5' };
const svgOptions = { theme: 'dark', width: 300, height: 200 };
const svgLegal = { 1: 'undefined {}', '1.theme': 'undefined', '1.width': size, '1.height': size };
const form = { '1': 'undefined 5' };

const calls: HostileTable = {
  'new ReportError': exempt('an error: its message is whatever it is given'),
  formatNumber: { args: () => [1, 3], legal: { 0: numbers, ...form } },
  formatDuration: { args: () => [1, 3, 'ms'], legal: { 0: numbers, ...form, 2: 'undefined' } },
  formatBytes: { args: () => [1, 3, 'KiB'], legal: { 0: numbers, ...form, 2: 'undefined' } },
  formatPercent: { args: () => [1, 3], legal: { 0: numbers, ...form } },
  formatRatio: { args: () => [1, 3], legal: { 0: numbers, ...form } },
  formatUncertain: { args: () => [1, 2, 3], legal: { 0: numbers, 1: numbers, 2: 'undefined 5' } },
  formatMeasured: {
    args: () => [1, { kind: 'duration', unit: 'ms', digits: 3 }, 1],
    legal: { 0: numbers, '1.unit': 'undefined', '1.digits': 'undefined 5', 2: `undefined ${numbers}` },
  },
  renderMarkdown: ofDocument,
  renderLatex: ofDocument,
  renderTypst: ofDocument,
  renderCsv: ofTable,
  renderJson: ofTable,
  renderTerminal: {
    args: () => [table(), { width: 80, color: true }],
    legal: {
      ...under('0', { ...tableLegal, columns: '' }),
      1: 'undefined {}',
      '1.width': 'undefined 5',
      '1.color': 'undefined',
    },
    deep: [0],
    named: "renderTerminal|table 'a-table'",
  },
  renderSentence: {
    args: () => ['Compiling takes 608 ms.', { width: 80 }],
    legal: { 0: "'' a", 1: 'undefined {}', '1.width': 'undefined 5' },
    named: 'renderSentence',
  },
  isDrawing: exempt('asks what a value is: any value may be asked'),
  isPicture: exempt('asks what a value is: any value may be asked'),
  plotLines: {
    args: () => [{ loss: [3, 2, 1] }, { title: 'Loss', x: 'Step', y: 'Loss' }],
    legal: {
      0: '{}',
      '0.loss': '[]',
      ...{
        1: 'undefined {}',
        '1.title': `undefined ${words}`,
        '1.x': `undefined ${words}`,
        '1.y': `undefined ${words}`,
      },
    },
  },
  plotTable: { args: () => [plot()], legal: under('0', listed), deep: [0] },
  ratioTable: { args: () => [ratios()], legal: under('0', ratioTableLegal), deep: [0] },
  rooflineTable: { args: () => [roofline()], legal: under('0', rooflineLegal), deep: [0] },
  timelineTable: {
    args: () => [timeline()],
    legal: under('0', timelineLegal),
    deep: [0],
    named: "timelineTable|timeline 'a-timeline'",
  },
  allocationTable: {
    args: () => [allocations()],
    legal: under('0', allocationsLegal),
    deep: [0],
    named: "allocationTable|allocations 'a-plot-of-memory'",
  },
  renderSvg: {
    args: () => [plot(), svgOptions],
    legal: { ...under('0', drawn), ...svgLegal },
    deep: [0],
    named: "renderSvg|plot 'a-plot'",
  },
  renderPng: {
    args: () => [plot(), { ...svgOptions, scale: 1, fontFiles: [] }],
    legal: { ...under('0', drawn), ...svgLegal, '1.scale': size, '1.fontFiles': 'undefined []' },
    deep: [0],
    named: "renderPng|plot 'a-plot'",
  },
  renderHtml: ofReport(table, tableLegal),
};

describe('everything that is exported', () => describeHostileArguments(reports, calls, reports.ReportError));

const { renderHtml, renderMarkdown, renderJson } = reports;

describe.each<[string, () => Block, Legal, Legal]>([
  ['a table', table, tableLegal, tableLegal],
  ['a plot', plot, drawn, listed],
  ['a roofline', roofline, rooflineLegal, rooflineLegal],
  ['ratios', ratios, ratiosLegal, ratioTableLegal],
  ['a timeline', timeline, timelineLegal, timelineLegal],
  ['allocations', allocations, allocationsLegal, allocationsLegal],
  ['a note', note, noteLegal, noteLegal],
])('a report with %s', (_, block, legalInHtml, legalInMarkdown) =>
  describeHostileArguments(
    { renderHtml, renderMarkdown },
    {
      renderHtml: ofReport(block, legalInHtml),
      renderMarkdown: ofReport(block, legalInMarkdown),
    },
    reports.ReportError,
  ),
);

describe('the other models of JSON', () => {
  describeHostileArguments(
    { renderJson },
    { renderJson: { args: () => [plot()], legal: under('0', listed), deep: [0] } },
    reports.ReportError,
  );
  describeHostileArguments({ renderJson }, { renderJson: ofReport(table, tableLegal) }, reports.ReportError);
});
