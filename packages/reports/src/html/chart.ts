import type { Table } from '../model.ts';
import { escapeXml } from '../text/xml.ts';
import type { ColorGroups } from '../plot/color-groups.ts';
import { jsonHtml } from './markup.ts';
import { captionHtml, tableHtml } from './table.ts';

/** A figure that `templates/chart.js` and its kinds draw on a canvas, over a time that can be zoomed. */
export interface Chart {
  kind: 'timeline' | 'allocations';
  block: { id: string; title: string; caption?: string };
  /** The tool before the buttons. */
  tool: string;
  groups: ColorGroups;
  /** What the script draws from. */
  data: unknown;
  /** The same in numbers, for paper and for browsers without scripts. */
  table: Table;
}

const ZOOMS = [
  ['in', 'Zoom in'],
  ['out', 'Zoom out'],
  ['all', 'Whole'],
] as const;

export function chartHtml({ kind, block, tool, groups, data, table }: Chart): string {
  const buttons = ZOOMS.map(([zoom, label]) => `<button type="button" data-zoom="${zoom}">${label}</button>`);
  return [
    `<figure class="chart ${kind}" id="${escapeXml(block.id)}">`,
    captionHtml(block),
    `<div class="tools">${tool}<output></output><span class="actions">${buttons.join('')}</span></div>`,
    legendHtml(groups),
    `<div class="canvas" tabindex="0" role="group" aria-label="${escapeXml(block.title)}, zoomable; its numbers are in the table below"><canvas></canvas></div>`,
    '<p class="hint">Click, then turn the wheel to zoom; drag to move; double-click one part to fill the view; keys + − ← → 0.</p>',
    `<details><summary>Numbers</summary>${tableHtml(table, false)}</details>`,
    `<script type="application/json" class="chart-data">${jsonHtml(data)}</script>`,
    '</figure>',
  ].join('\n');
}

// Nothing stands where colours only tell neighbours apart.
function legendHtml({ legend }: ColorGroups): string {
  if (legend.length === 0) return '';
  const items = legend.map(
    ({ label, color }) => `<li><i style="background: var(--series-${color})"></i>${escapeXml(label)}</li>`,
  );
  return `<ul class="legend">${items.join('')}</ul>`;
}

/** Nanoseconds are as fine as clocks are; more digits would only make the page longer. */
export function roundTime(timeUs: number): number {
  return Math.round(timeUs * 1000) / 1000;
}

/** Each text once, and its positions. */
export class Names {
  readonly list: string[] = [];
  readonly #indices = new Map<string, number>();

  indexOf(name: string): number {
    const known = this.#indices.get(name);
    if (known !== undefined) return known;
    this.#indices.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}
