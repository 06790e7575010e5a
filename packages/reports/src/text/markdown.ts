import { alignmentOf, failureNotes, headingText, tableTexts } from '../table/cell-text.ts';
import { environmentTable } from '../table/environment-table.ts';
import { checkModel, isPicture } from '../check/check-model.ts';
import { callable, optionsOf, requireThat, text } from '../check/checks.ts';
import type { Block, Column, Picture, Report, Table } from '../model.ts';
import { blockTable } from '../table/block-table.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { printable } from './printable.ts';
import { escaper, writeRow } from './text-form.ts';
import type { Escapes, TextForm } from './text-form.ts';

/** What GitHub's Markdown would take for markup in a cell. */
export const MARKDOWN_ESCAPES: Escapes = {
  '\\': '\\\\',
  '|': '\\|',
  '*': '\\*',
  _: '\\_',
  '`': '\\`',
  '~': '\\~',
  $: '\\$',
  '[': '\\[',
  ']': '\\]',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\r\n': '<br>',
  '\n': '<br>',
  '\r': '<br>',
};

const escape = escaper(MARKDOWN_ESCAPES);

const ROW = { rowStart: '| ', cellSeparator: ' | ', rowEnd: ' |\n' };

/** Prose keeps its markup; HTML in it, outside its code, is shown as written. */
function prose(text: string): string {
  return text
    .split(/(`[^`]+`)/)
    .map((part, index) =>
      index % 2 === 1 ? part : part.replace(/&(?=#?\w+;)/g, '&amp;').replace(/<(?=[A-Za-z/!?])/g, '&lt;'),
    )
    .join('');
}

/** Options of `renderMarkdown`. */
export interface MarkdownOptions {
  /** Where a picture is, relative to the document; without it, or where it gives null, its table is written. */
  plotPath?: (picture: Picture) => string | null;
}

const markdownOptions = optionsOf({ plotPath: callable });

/** A table without its padding: `renderMarkdown` aligns the columns of its source as well. */
export function markdownForm(table: Table): TextForm {
  const cells = table.columns.map((column) => escape(headingText(column)));
  const form: TextForm = { begin: '', end: '', ...ROW };
  form.begin =
    writeRow(form, cells) +
    writeRow(
      form,
      table.columns.map((column) => ruleCell(column, 3)),
    );
  return form;
}

/**
 * GitHub-flavoured Markdown: the pipe table alone for a table, a whole document for a report.
 *
 * @throws ReportError for what is neither, and for timelines and allocations that cannot be drawn.
 */
export function renderMarkdown(model: Report | Table, options: MarkdownOptions = {}): string {
  checkModel('renderMarkdown', model);
  requireThat('renderMarkdown', 'options', options, markdownOptions);
  return printable('sections' in model ? renderDocument(model, options) : renderPipeTable(model));
}

/** A column is no wider in the source: one long kernel name would fill every other row with blanks. */
const widestPadding = 48;

function renderPipeTable(given: Table): string {
  const table = withColumnUnits(given);
  const lines = [
    table.columns.map((column) => escape(headingText(column))),
    ...tableTexts(table).map((row) => row.map(escape)),
  ];
  const widths = table.columns.map((_, index) =>
    Math.min(
      lines.reduce((width, line) => Math.max(width, line[index]!.length), 3),
      widestPadding,
    ),
  );
  const padded = lines.map((line) =>
    line.map((cell, index) =>
      alignmentOf(table.columns[index]!) === 'right'
        ? cell.padStart(widths[index]!)
        : cell.padEnd(widths[index]!),
    ),
  );
  padded.splice(
    1,
    0,
    table.columns.map((column, index) => ruleCell(column, widths[index]!)),
  );
  const form: TextForm = { begin: '', end: '', ...ROW };
  return padded.map((line) => writeRow(form, line)).join('');
}

function ruleCell(column: Column, width: number): string {
  const alignment = alignmentOf(column);
  if (alignment === 'right') return `${'-'.repeat(width - 1)}:`;
  return alignment === 'center' ? `:${'-'.repeat(width - 2)}:` : '-'.repeat(width);
}

function renderDocument(report: Report, options: MarkdownOptions): string {
  const anchor = anchorsOf(report);
  const parts = [`# ${escape(report.title)}`];
  if (report.subtitle) parts.push(prose(report.subtitle));
  parts.push(`Created ${escape(report.createdAt)}.`);
  if (report.summary.length > 0) parts.push(bullets(report.summary.map(prose)));
  if (report.chart) parts.push(...anchor(report.chart.id), ...renderBlock(report.chart, 3, options));
  for (const section of report.sections) {
    const level = (section.level ?? 1) + 1;
    const heading = `${'#'.repeat(level)} ${escape(section.title)}`;
    parts.push(...anchor(section.id), heading, ...(section.text ?? []).map(prose));
    for (const block of section.blocks) {
      if ('id' in block) parts.push(...anchor(block.id));
      parts.push(...renderBlock(block, level + 1, options));
    }
  }
  if (report.environment.length > 0) {
    parts.push('## Environment', renderPipeTable(environmentTable(report)).trimEnd());
  }
  return `${parts.join('\n\n')}\n`;
}

/** The anchor of an id that prose leads to; readers make others of headings than these. */
function anchorsOf(report: Report): (id: string) => string[] {
  const targets = new Set(
    proseOf(report).flatMap((text) => Array.from(text.matchAll(/\]\(#([\w:.-]+)\)/g), ([, id]) => id!)),
  );
  return (id) => (targets.has(id) ? [`<a id="${id}"></a>`] : []);
}

function proseOf({ summary, chart, sections }: Report): string[] {
  const blocks = [...(chart ? [chart] : []), ...sections.flatMap((section) => section.blocks)];
  return [
    ...summary,
    ...sections.flatMap((section) => section.text ?? []),
    ...blocks.map((block) => (block.kind === 'note' ? block.text : (block.caption ?? ''))),
  ];
}

function renderBlock(block: Block, level: number, options: MarkdownOptions): string[] {
  if (block.kind === 'note') return [`> ${prose(block.text).replaceAll('\n', '\n> ')}`];
  const parts = [`${'#'.repeat(level)} ${escape(block.title)}`];
  if (block.caption) parts.push(prose(block.caption));
  const path = isPicture(block) ? (options.plotPath?.(block) ?? null) : null;
  if (path !== null) {
    requireThat('renderMarkdown', `plotPath of '${block.id}'`, path, text);
    return [...parts, `![${escape(block.title)}](${pathUrl(path)})`];
  }
  const table = blockTable(block);
  parts.push(renderPipeTable(table).trimEnd());
  const failures = failureNotes(table);
  if (failures.length > 0) parts.push(bullets(failures.map(escape)));
  return parts;
}

/** What would end the address of an image, or its path, is part of a file's name here. */
function pathUrl(path: string): string {
  return encodeURI(path).replace(/[#?()]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`);
}

function bullets(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}
