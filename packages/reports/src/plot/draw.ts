import type { Markish, PlotOptions } from '@observablehq/plot';
import { emptyDocument, observablePlot } from './drawing-libraries.ts';
import type { DrawnPlot } from './defaults.ts';
import { layOut, FONT_SIZE, X_INSET } from './layout.ts';
import { FONT_FAMILY } from './font-family.ts';
import { inWords } from './in-words.ts';
import type { PlotLayout, PlotSize } from './layout.ts';
import { axisMarks, endMarks, legendMarks, referenceMarks, titleMarks } from './frame.ts';
import type { Palette } from './palette.ts';
import { seriesMarks } from './series.ts';
import { printable } from '../text/printable.ts';
import { escapeXml } from '../text/xml.ts';

export function drawPlot(plot: DrawnPlot, palette: Palette, size: PlotSize): string {
  const layout = layOut(plot, size);
  return drawSvg(plot, layout, palette, [
    ...plot.series.flatMap((_, index) => seriesMarks(plot, index, layout, palette)),
    ...referenceMarks(plot, palette),
  ]);
}

/**
 * The source of an `<svg>` element, drawn by Observable Plot on a document of linkedom's: no browser. `content` is what
 * stands on the axes; these, the legend and the title are the plot's.
 */
export function drawSvg(plot: DrawnPlot, layout: PlotLayout, palette: Palette, content: Markish[]): string {
  const marks: Markish[] = [
    ...axisMarks(plot, layout, palette),
    ...content,
    ...legendMarks(plot, layout, palette),
    ...endMarks(plot, layout, palette),
    ...titleMarks(layout, palette),
  ];
  const document = emptyDocument();
  const svg = observablePlot().plot({ ...plotOptions(layout), document, marks });
  // Plot's own style sheet works only in browsers; the attributes below say the same.
  svg.querySelector('style')?.remove();
  svg.removeAttribute('class');
  svg.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  svg.setAttribute('font-family', FONT_FAMILY);
  svg.setAttribute('font-size', String(FONT_SIZE));
  svg.setAttribute('color', palette.ink);
  svg.setAttribute('role', 'img');
  if (layout.standalone) {
    svg.insertAdjacentHTML('afterbegin', `<rect width="100%" height="100%" fill="${palette.background}" />`);
  }
  // Not by setAttribute: linkedom writes attributes as HTML does, in which a `<` is allowed.
  return printable(svg.outerHTML).replace('<svg', () => `<svg aria-label="${escapeXml(inWords(plot))}"`);
}

function plotOptions({ x, y, width, height, margin }: PlotLayout): PlotOptions {
  const horizontal =
    x.scale === 'category'
      ? { type: 'linear' as const, domain: [-0.5, x.domain.length - 0.5] }
      : { type: x.scale, domain: x.domain, inset: X_INSET };
  return {
    width,
    height,
    marginTop: margin.top,
    marginRight: margin.right,
    marginBottom: margin.bottom,
    marginLeft: margin.left,
    x: { ...horizontal, axis: null },
    y: { type: y.scale, domain: y.domain, axis: null },
    // Radii are pixels.
    r: { type: 'identity' },
  };
}
