import { checkPlot } from '../check/check-model.ts';
import { length, oneOf, optionsOf, requireThat } from '../check/checks.ts';
import type { Plot } from '../model.ts';
import { drawSvg } from './draw.ts';
import { CSS_PALETTE, PALETTES } from './palette.ts';
import type { Theme } from './palette.ts';

export interface SvgOptions {
  theme?: Theme;
  /** Pixels. */
  width?: number;
  height?: number;
}

export const svgOptionChecks = { theme: oneOf(Object.keys(PALETTES)), width: length, height: length };
const svgOptions = optionsOf(svgOptionChecks);

/**
 * A plot as a standalone SVG image, with its title and background.
 *
 * @throws ReportError for values that the axes cannot take.
 */
export function renderSvg(plot: Plot, options: SvgOptions = {}): string {
  checkPlot('renderSvg', plot);
  requireThat('renderSvg', 'options', options, svgOptions);
  const { theme = 'light', width = 720, height = 420 } = options;
  return `${drawSvg(plot, PALETTES[theme], { width, height, standalone: true })}\n`;
}

/** A plot for a page that defines the variables of `paletteVariables` and shows the title itself. */
export function renderInlineSvg(plot: Plot, width: number, height: number): string {
  return drawSvg(plot, CSS_PALETTE, { width, height, standalone: false });
}
