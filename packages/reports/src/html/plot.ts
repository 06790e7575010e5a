import type { Plot } from '../model.ts';
import { plotTable } from '../plot/table.ts';
import { renderInlineSvg } from '../plot/svg.ts';
import { escapeXml } from '../text/xml.ts';
import { captionHtml, tableHtml } from './table.ts';

/** Pixels. The page shows the one that fits, so that text keeps its size on a phone. */
const WIDE = { width: 860, height: 400 };
const NARROW = { width: 400, height: 340 };

/** A plot in both widths, with its numbers as a table below. */
export function plotHtml(plot: Plot): string {
  return [
    `<figure class="plot" id="${escapeXml(plot.id)}">`,
    captionHtml(plot),
    `<div class="wide">${renderInlineSvg(plot, WIDE.width, WIDE.height)}</div>`,
    `<div class="narrow">${renderInlineSvg(plot, NARROW.width, NARROW.height)}</div>`,
    `<details><summary>Numbers</summary>${tableHtml(plotTable(plot), false)}</details>`,
    '</figure>',
  ].join('\n');
}
