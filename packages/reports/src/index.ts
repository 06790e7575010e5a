export { ReportError } from './model.ts';
export type {
  Allocation,
  AllocationPlot,
  Axis,
  Block,
  Cell,
  Column,
  ColumnKind,
  Counter,
  Note,
  Plot,
  Point,
  Report,
  Row,
  RowStatus,
  Section,
  Series,
  Slice,
  Table,
  Timeline,
  Track,
} from './model.ts';
export {
  formatBytes,
  formatDuration,
  formatMeasured,
  formatNumber,
  formatPercent,
  formatRatio,
  formatUncertain,
} from './format.ts';
export { STATUS_MARKERS } from './cell-text.ts';
export { renderMarkdown } from './markdown.ts';
export type { MarkdownOptions } from './markdown.ts';
export { renderLatex } from './latex.ts';
export { renderTypst } from './typst.ts';
export { renderCsv } from './csv.ts';
export { renderJson } from './json.ts';
export { renderTerminal } from './terminal.ts';
export type { TerminalOptions } from './terminal.ts';
export { plotTable } from './plot-table.ts';
export { timelineTable } from './timeline/table.ts';
export { allocationTable } from './allocations/table.ts';
export { renderSvg } from './svg.ts';
export type { SvgOptions } from './svg.ts';
export type { Theme } from './plot/palette.ts';
export { renderPng } from './png.ts';
export type { PngOptions } from './png.ts';
export { renderHtml } from './html/page.ts';
