import { displayWidth } from '../text/display-width.ts';

/** Generous widths of characters in the system's fonts, in pixels: an SVG is laid out before any font is known. */
const CHARACTER_WIDTHS = { narrow: 4.2, usual: 7.2, wide: 9.2 };

/** Pixels of a text of 12 pixels. */
export function textWidth(text: string): number {
  const narrow = text.match(/[ ijltfr.,:;|'!()[\]-]/g)?.length ?? 0;
  const wide = text.match(/[A-Zmw%@±×]/g)?.length ?? 0;
  const usual = displayWidth(text) - narrow - wide;
  return narrow * CHARACTER_WIDTHS.narrow + usual * CHARACTER_WIDTHS.usual + wide * CHARACTER_WIDTHS.wide;
}
