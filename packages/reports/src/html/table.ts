import {
  MISSING,
  failureNotes,
  isMeasured,
  isRoofShare,
  statusMarker,
  tableTexts,
} from '../table/cell-text.ts';
import { withColumnUnits } from '../table/column-units.ts';
import { headingUnit } from '../table/number-text.ts';
import type { Column, Row, Table } from '../model.ts';
import { spellNonFinite } from '../text/json.ts';
import { jsonHtml, proseHtml } from './markup.ts';
import { shortSymbol } from '../text/short-symbol.ts';
import { escapeXml } from '../text/xml.ts';
import { cellClass, tableData } from './table-data.ts';

/** Rows on a page of a long table; the script on the page draws the others when they are asked for. */
const PAGE_ROWS = 100;
/** Tables with fewer rows are read at a glance: no filter. */
const FILTERED_ROWS = 12;

/** Prose of more characters shows its first lines. */
const LONG_TEXT = 60;

/** A longer table shows its first rows, and the others when asked for: two more are not worth a button. */
const FOLDED_ROWS = 10;
const LONGEST_UNFOLDED = 12;

/** A table with its tools and its data. `heading` is false where what surrounds it names it already. */
export function tableHtml(given: Table, heading = true): string {
  const table = withColumnUnits(given);
  const id = escapeXml(table.id);
  const classes = table.columns.map((column) => cellClass(table, column));
  const texts = tableTexts(table);
  const isFolded = table.rows.length > LONGEST_UNFOLDED;
  const failures = failureNotes(table).map((note) => `<li>${escapeXml(note)}</li>`);
  return [
    `<figure class="table${isFolded ? ' folded' : ''}" ${heading ? `id="${id}"` : ''} data-name="${id}" data-page-rows="${PAGE_ROWS}">`,
    heading ? captionHtml(table) : '',
    toolsHtml(table),
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeXml(table.title)}"><table>`,
    `<thead><tr>${table.columns.map((column, index) => headHtml(column, classes[index]!)).join('')}</tr></thead>`,
    '<tbody>',
    ...table.rows.slice(0, PAGE_ROWS).map((row, i) => rowHtml(table, row, texts[i]!, classes)),
    '</tbody></table></div>',
    isFolded ? unfoldButton(table) : '',
    '<div class="pager" hidden><button type="button" data-turn="-1">Previous</button>' +
      '<span class="range"></span><button type="button" data-turn="1">Next</button></div>',
    failures.length > 0 ? `<ul class="failures">${failures.join('')}</ul>` : '',
    longTableNote(table),
    `<script type="application/json" class="data">${jsonHtml(tableData(table), spellNonFinite)}</script>`,
    '</figure>',
  ]
    .filter(Boolean)
    .join('\n');
}

function unfoldButton({ rows }: Table): string {
  return `<button type="button" class="unfold" data-folded-rows="${FOLDED_ROWS}">All ${rows.length} rows</button>`;
}

/** The heading and caption of a table or plot, with a link to it. */
export function captionHtml({ id, title, caption }: { id: string; title: string; caption?: string }): string {
  const link = `<a class="anchor" href="#${escapeXml(id)}" aria-label="Link to ${escapeXml(title)}">#</a>`;
  const text = caption ? `<p>${proseHtml(caption)}</p>` : '';
  return `<figcaption><h3>${escapeXml(title)}${link}</h3>${text}</figcaption>`;
}

function toolsHtml(table: Table): string {
  const buttons = (action: string, names: string[]) =>
    names.map((name) => `<button type="button" data-${action}="${name}">${name}</button>`).join('');
  const filter =
    table.rows.length < FILTERED_ROWS
      ? ''
      : `<input type="search" placeholder="Filter rows" aria-label="Filter the rows of ${escapeXml(table.title)}">`;
  return [
    `<div class="tools">${filter}<output></output>`,
    `<span class="actions"><span>Copy</span>${buttons('copy', ['Markdown', 'LaTeX', 'CSV'])}</span>`,
    `<span class="actions"><span>Save</span>${buttons('save', ['CSV', 'JSON'])}</span></div>`,
  ].join('');
}

function headHtml(column: Column, className: string): string {
  const unit = headingUnit(column);
  const label = escapeXml(column.label) + (unit ? ` <span class="unit">${escapeXml(unit)}</span>` : '');
  const title = column.description ? ` title="${escapeXml(column.description)}"` : '';
  return `<th scope="col" class="${className}" aria-sort="none"${title}><button type="button">${label}</button></th>`;
}

/** `templates/tables.js` draws the same row from the table's data. */
function rowHtml(table: Table, row: Row, texts: readonly string[], classes: readonly string[]): string {
  const marker = statusMarker(row);
  const cells = texts.map((text, index) => {
    const column = table.columns[index]!;
    const isEmpty = text === marker || text === MISSING;
    const value = row[column.key];
    const bar =
      isRoofShare(column) && typeof value === 'number' && !isEmpty
        ? `<i style="--share:${Math.max(0, Math.min(1, value))}"></i>`
        : '';
    return `<td class="${classes[index]}${isEmpty ? ' empty' : ''}">${bar}${cellHtml(text, column)}</td>`;
  });
  const attributes = marker === undefined ? '' : ` class="failed" title="${escapeXml(row.error ?? marker)}"`;
  return `<tr${attributes}>${cells.join('')}</tr>`;
}

function cellHtml(text: string, column: Column): string {
  if (!isMeasured(column)) return wordsHtml(text);
  const [value, deviation] = text.split(' ± ', 2);
  return escapeXml(value!) + (deviation ? `<span class="deviation"> ± ${escapeXml(deviation)}</span>` : '');
}

/** What is too long to show has the whole under the pointer. */
function wordsHtml(text: string): string {
  const shown = shortSymbol(text);
  if (shown === text && text.length <= LONG_TEXT) return escapeXml(text);
  return `<span class="${shown === text ? 'lines' : 'short'}" title="${escapeXml(text)}">${escapeXml(shown)}</span>`;
}

function longTableNote(table: Table): string {
  if (table.rows.length <= PAGE_ROWS) return '';
  return `<p class="unscripted">The first ${PAGE_ROWS} of ${table.rows.length} rows; a browser with scripts shows all.</p>`;
}
