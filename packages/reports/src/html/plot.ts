import type { Drawing } from '../model.ts';
import { blockTable } from '../table/block-table.ts';
import { renderInlineSvg } from '../plot/svg.ts';
import { escapeXml } from '../text/xml.ts';
import { captionHtml, tableHtml } from './table.ts';

/** Pixels. The page shows the one that fits, so that text keeps its size on a phone. */
const SIZES = {
  plot: { wide: { width: 860, height: 400 }, narrow: { width: 400, height: 340 } },
  roofline: { wide: { width: 960, height: 520 }, narrow: { width: 400, height: 420 } },
  // As high as its rows.
  ratios: { wide: { width: 860, height: 0 }, narrow: { width: 358, height: 0 } },
};

/** A plot in both widths, with its numbers as a table below. */
export function plotHtml(plot: Drawing): string {
  const { wide, narrow } = SIZES[plot.kind];
  return [
    `<figure class="plot" id="${escapeXml(plot.id)}">`,
    captionHtml(plot),
    `<div class="wide">${renderInlineSvg(plot, wide.width, wide.height)}</div>`,
    `<div class="narrow">${renderInlineSvg(plot, narrow.width, narrow.height)}</div>`,
    `<details><summary>Numbers</summary>${tableHtml(blockTable(plot), false)}</details>`,
    '</figure>',
  ].join('\n');
}
