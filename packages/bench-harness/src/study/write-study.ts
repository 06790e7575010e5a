import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  isPicture,
  renderHtml,
  renderLatex,
  renderMarkdown,
  renderPng,
  renderSvg,
  renderTypst,
  ReportError,
  type Picture,
  type Report,
} from '@roofline/reports';
import { makeWritable } from '../records/results-folder.ts';
import { inFreePlace } from '../report/write-report.ts';

const themes = ['light', 'dark'] as const;

/** The files of a study. */
export interface WrittenStudy {
  /** The page with everything inside. */
  readonly html: string;
  readonly files: readonly string[];
  /** Why there are no PNG files, and figures are tables in LaTeX; null where there are. */
  readonly withoutPng: string | null;
}

/**
 * Writes `study.html`, `study.md`, `study.tex` and `study.typ` into `folder`, and each of its figures, and `more`, as
 * `figures/PROBLEM-NAME-{light,dark}.{svg,png}`. Throws UsageError where nothing can be written.
 */
export async function writeStudy(
  report: Report,
  folder: string,
  more: readonly Picture[] = [],
  onFigure: (done: number, total: number) => void = () => {},
): Promise<WrittenStudy> {
  makeWritable(folder);
  emptyOfFigures(join(folder, 'figures'));
  const files: string[] = [];
  const write = (name: string, content: string | Uint8Array) => {
    const path = resolve(folder, name);
    inFreePlace(path, () => writeFileSync(path, content));
    files.push(path);
    return path;
  };

  const shown = report.sections.flatMap(({ blocks }) => blocks).filter((block) => isPicture(block));
  const pictures = [...shown, ...more];
  let withoutPng: string | null = null;
  for (const [index, picture] of pictures.entries()) {
    onFigure(index, pictures.length);
    for (const theme of themes) {
      write(figurePath(picture, theme, 'svg'), renderSvg(picture, { theme }));
      withoutPng ??= await attemptPng(
        () => renderPng(picture, { theme }),
        (png) => write(figurePath(picture, theme, 'png'), png),
      );
    }
  }
  const svgs = { plotPath: (picture: Picture) => figurePath(picture, 'light', 'svg') };
  const pngs = { plotPath: (picture: Picture) => figurePath(picture, 'light', 'png') };
  const html = write('study.html', renderHtml(report));
  write('study.md', renderMarkdown(report, svgs));
  write('study.tex', renderLatex(report, withoutPng === null ? pngs : {}));
  write('study.typ', renderTypst(report, svgs));
  return { html, files, withoutPng };
}

/** How the figures of a study end; others in their folder are somebody's own, as where a paper lies next to it. */
const FIGURE = /-(light|dark)\.(svg|png)$/;

/** Makes the folder of the figures. Those of cells that are shown no more would stay. */
function emptyOfFigures(folder: string): void {
  inFreePlace(folder, () => mkdirSync(folder, { recursive: true }));
  for (const name of readdirSync(folder)) if (FIGURE.test(name)) rmSync(join(folder, name));
}

function figurePath({ id }: Picture, theme: (typeof themes)[number], extension: 'svg' | 'png'): string {
  return `figures/${id.replaceAll(/[^\w.-]/g, '-')}-${theme}.${extension}`;
}

/** A host may have no font, or no renderer for its platform: that is said, and everything else is written. */
async function attemptPng(
  render: () => Promise<Uint8Array>,
  write: (png: Uint8Array) => unknown,
): Promise<string | null> {
  try {
    write(await render());
    return null;
  } catch (error) {
    if (error instanceof ReportError) return error.message;
    throw error;
  }
}
