import { distance } from 'fastest-levenshtein';
import { RooflineError } from '../errors.ts';

/**
 * Throws a RooflineError (code OPTION) if `options` is no object or has an option that `owner` does not know; the
 * nearest of the `known` ones is named. TypeScript tells most callers; those from JavaScript would be ignored silently.
 */
export function checkOptions(owner: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new RooflineError(
      'OPTION',
      `${owner}: options are an object such as { ${known[0]} }, not ${String(options)}.`,
    );
  }
  for (const name in options) {
    if (known.includes(name)) continue;
    const nearest = nearestOf(name, known);
    const hint = nearest === null ? '' : `did you mean "${nearest}"? `;
    throw new RooflineError(
      'OPTION',
      `${owner}: there is no option "${name}"; ${hint}It takes ${known.join(', ')}.`,
    );
  }
}

/** Abbreviations and other libraries' names, which no count of edits finds. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  lr: ['learningRate'],
  dim: ['dims', 'dimension'],
  axis: ['dims', 'dimension'],
  keepdim: ['keepDims'],
  keepdims: ['keepDims'],
};

/** The known name that a wrong one is most likely meant to be; null if none is near. */
function nearestOf(name: string, known: readonly string[]): string | null {
  const meant = synonyms[name.toLowerCase()]?.find((synonym) => known.includes(synonym));
  if (meant !== undefined) return meant;
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const distances = known.map((candidate) => distance(plain(name), plain(candidate)));
  const least = Math.min(...distances);
  return least <= Math.max(1, name.length / 2) ? known[distances.indexOf(least)]! : null;
}
