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
  Drawing,
  Note,
  Picture,
  Plot,
  Point,
  RatioPlot,
  RatioRow,
  Report,
  RooflinePlot,
  RooflinePoint,
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
} from './table/format.ts';
export { STATUS_MARKERS } from './table/cell-text.ts';
export { WIDE_SPREAD } from './text/spread-marks.ts';
export { renderMarkdown } from './text/markdown.ts';
export type { MarkdownOptions } from './text/markdown.ts';
export { renderLatex } from './text/latex.ts';
export { renderTypst } from './text/typst.ts';
export type { DocumentOptions } from './text/document.ts';
export { renderCsv } from './text/csv.ts';
export { renderJson } from './text/json.ts';
export { renderSentence, renderTerminal } from './text/terminal.ts';
export type { TerminalOptions } from './text/terminal.ts';
export { plotLines } from './plot/plot-lines.ts';
export type { PlotLinesOptions } from './plot/plot-lines.ts';
export { plotTable } from './plot/table.ts';
export { rooflineTable } from './roofline/table.ts';
export { isDrawing, isPicture } from './check/check-model.ts';
export { ratioTable } from './ratios/table.ts';
export { timelineTable } from './timeline/table.ts';
export { allocationTable } from './allocations/table.ts';
export { renderSvg } from './plot/svg.ts';
export type { SvgOptions } from './plot/svg.ts';
export type { Theme } from './plot/palette.ts';
export { renderPng } from './plot/png.ts';
export type { PngOptions } from './plot/png.ts';
export { renderHtml, type HtmlOptions } from './html/page.ts';
