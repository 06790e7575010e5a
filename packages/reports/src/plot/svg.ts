import { checkDrawing } from '../check/check-model.ts';
import { length, oneOf, optionsOf, requireThat } from '../check/checks.ts';
import type { Plot, RooflinePlot } from '../model.ts';
import { drawRoofline } from '../roofline/draw.ts';
import { drawPlot } from './draw.ts';
import type { PlotSize } from './layout.ts';
import { CSS_PALETTE, PALETTES } from './palette.ts';
import type { Palette, Theme } from './palette.ts';

/** Options of `renderSvg`. */
export interface SvgOptions {
  theme?: Theme;
  /** Pixels. */
  width?: number;
  /** Pixels; the image is higher where its texts would leave less than a quarter of it to the plot. */
  height?: number;
}

export const svgOptionChecks = { theme: oneOf(Object.keys(PALETTES)), width: length, height: length };
const svgOptions = optionsOf(svgOptionChecks);

/**
 * A plot or a roofline as a standalone SVG image, with its title and background.
 *
 * @throws ReportError for values that the axes cannot take, and for a point under a ceiling that is not there.
 */
export function renderSvg(plot: Plot | RooflinePlot, options: SvgOptions = {}): string {
  checkDrawing('renderSvg', plot);
  requireThat('renderSvg', 'options', options, svgOptions);
  const { theme = 'light', width = 720, height = 420 } = options;
  return `${draw(plot, PALETTES[theme], { width, height, standalone: true })}\n`;
}

/** A plot for a page that defines the variables of `paletteVariables` and shows the title itself. */
export function renderInlineSvg(plot: Plot | RooflinePlot, width: number, height: number): string {
  return draw(plot, CSS_PALETTE, { width, height, standalone: false });
}

function draw(plot: Plot | RooflinePlot, palette: Palette, size: PlotSize): string {
  return plot.kind === 'roofline' ? drawRoofline(plot, palette, size) : drawPlot(plot, palette, size);
}
