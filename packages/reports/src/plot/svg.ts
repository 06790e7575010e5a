import { drawAllocations } from '../allocations/draw.ts';
import { checkPicture } from '../check/check-model.ts';
import { length, oneOf, optionsOf, requireThat } from '../check/checks.ts';
import type { Drawing, Picture } from '../model.ts';
import { drawRatios } from '../ratios/draw.ts';
import { drawRoofline } from '../roofline/draw.ts';
import { drawRows } from '../rows/draw.ts';
import { wantsRows } from '../rows/layout.ts';
import { drawTimeline } from '../timeline/draw.ts';
import { withDefaults } from './defaults.ts';
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
 * A picture as a standalone SVG image, with its title and background; one of ratios, and a timeline, is as high as its rows.
 *
 * @throws ReportError for values that the axes cannot take, and for a point under a ceiling that is not there.
 */
export function renderSvg(plot: Picture, options: SvgOptions = {}): string {
  checkPicture('renderSvg', plot);
  requireThat('renderSvg', 'options', options, svgOptions);
  const { theme = 'light', width = 720, height = 420 } = options;
  return `${draw(plot, PALETTES[theme], { width, height, standalone: true })}\n`;
}

/** A plot for a page that defines the variables of `paletteVariables` and shows the title itself. */
export function renderInlineSvg(plot: Drawing, width: number, height: number): string {
  return draw(plot, CSS_PALETTE, { width, height, standalone: false });
}

function draw(plot: Picture, palette: Palette, size: PlotSize): string {
  if (plot.kind === 'timeline') return drawTimeline(plot, palette, size);
  if (plot.kind === 'allocations') return drawAllocations(plot, palette, size);
  if (plot.kind === 'roofline') return drawRoofline(plot, palette, size);
  if (plot.kind === 'ratios') return drawRatios(plot, palette, size);
  const drawn = withDefaults(plot);
  return (wantsRows(drawn, size) ? drawRows : drawPlot)(drawn, palette, size);
}
