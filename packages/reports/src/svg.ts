import type { Plot } from './model.ts';
import { drawSvg } from './plot/draw.ts';
import { CSS_PALETTE, PALETTES } from './plot/palette.ts';
import type { Theme } from './plot/palette.ts';

export interface SvgOptions {
  theme?: Theme;
  /** Pixels. */
  width?: number;
  height?: number;
}

/**
 * A plot as a standalone SVG image, with its title and background.
 *
 * @throws ReportError for values that the axes cannot take.
 */
export function renderSvg(
  plot: Plot,
  { theme = 'light', width = 720, height = 420 }: SvgOptions = {},
): string {
  return `${drawSvg(plot, PALETTES[theme], { width, height, standalone: true })}\n`;
}

/** A plot for a page that defines the variables of `paletteVariables` and shows the title itself. */
export function renderInlineSvg(plot: Plot, width: number, height: number): string {
  return drawSvg(plot, CSS_PALETTE, { width, height, standalone: false });
}
