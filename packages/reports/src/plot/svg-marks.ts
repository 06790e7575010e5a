import { escapeXml } from '../text/xml.ts';
import type { Palette } from './palette.ts';

// Pieces of an SVG's source, for drawings that are laid out by hand.

/** Keeps a text readable across lines. */
export function haloOf({ background }: Palette): string {
  return `stroke="${background}" stroke-width="4" paint-order="stroke" stroke-linejoin="round"`;
}

export function anchor(end: 'start' | 'middle' | 'end'): string {
  return end === 'start' ? '' : ` text-anchor="${end}"`;
}

export function text(content: string, x: number, y: number, style: string): string {
  return `<text x="${px(x)}" y="${px(y)}" ${style}>${escapeXml(content)}</text>`;
}

export function line(x1: number, y1: number, x2: number, y2: number, stroke: string, width = 1): string {
  return `<line x1="${px(x1)}" y1="${px(y1)}" x2="${px(x2)}" y2="${px(y2)}" stroke="${stroke}" stroke-width="${width}"/>`;
}

export function px(value: number): string {
  return String(Number(value.toFixed(1)));
}
