import { checkModel } from '../check/check-model.ts';
import { printableJson } from './printable.ts';
import type { Plot, Report, RooflinePlot, Table } from '../model.ts';

/**
 * The model itself, indented. JSON has no NaN and no Infinity: they are written as the strings `"NaN"`,
 * `"Infinity"` and `"-Infinity"`.
 */
export function renderJson(model: Report | Table | Plot | RooflinePlot): string {
  checkModel('renderJson', model);
  return `${printableJson(JSON.stringify(model, spellNonFinite, 2))}\n`;
}

/** A replacer for `JSON.stringify`. */
export function spellNonFinite(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
