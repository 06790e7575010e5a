import { checkPicture } from '../check/check-model.ts';
import { length, listOf, optionsOf, requireThat, text } from '../check/checks.ts';
import { ReportError } from '../model.ts';
import type { Picture } from '../model.ts';
import { renderSvg, svgOptionChecks } from './svg.ts';
import type { SvgOptions } from './svg.ts';

/** Options of `renderPng`. */
export interface PngOptions extends SvgOptions {
  /** Image pixels for each pixel of `width` and `height`. */
  scale?: number;
  /** Font files to draw with, besides the system's. */
  fontFiles?: string[];
}

const pngOptions = optionsOf({ ...svgOptionChecks, scale: length, fontFiles: listOf(text) });

/**
 * A picture as a PNG image.
 *
 * @throws ReportError where resvg has no binary for this platform, or finds no font to write the labels with.
 */
export async function renderPng(plot: Picture, options: PngOptions = {}): Promise<Uint8Array> {
  checkPicture('renderPng', plot);
  requireThat('renderPng', 'options', options, pngOptions);
  const { scale = 2, fontFiles = [], ...svgOptions } = options;
  const { Resvg } = await loadResvg();
  const font = { loadSystemFonts: true, fontFiles, defaultFontFamily: 'DejaVu Sans' };
  // resvg leaves out text it has no font for, without a word.
  const probe = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="20">M</text></svg>';
  if (new Resvg(probe, { font }).getBBox() === undefined) {
    throw new ReportError(
      'renderPng found no font: install one (apt-get install fonts-dejavu-core) or pass `fontFiles`; renderSvg needs none',
    );
  }
  const image = new Resvg(renderSvg(plot, svgOptions), { font, fitTo: { mode: 'zoom', value: scale } });
  return image.render().asPng();
}

async function loadResvg(): Promise<typeof import('@resvg/resvg-js')> {
  try {
    return await import('@resvg/resvg-js');
  } catch (cause) {
    throw new ReportError(
      `renderPng needs the binary of @resvg/resvg-js for ${process.platform}-${process.arch}, which did not load: ` +
        'reinstall with optional dependencies, or use renderSvg, which needs none',
      { cause },
    );
  }
}
