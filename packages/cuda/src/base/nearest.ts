import { distance } from 'fastest-levenshtein';
import { checkText, wrongArgument } from './check-value.ts';

/** Abbreviations and other libraries' names, which no count of edits finds. */
const synonyms: ReadonlyMap<string, readonly string[]> = new Map([
  ['lr', ['learningRate']],
  ['dim', ['dims', 'dimension']],
  ['axis', ['dims', 'dimension']],
  ['keepdim', ['keepDims']],
  ['keepdims', ['keepDims']],
]);

/** The known name that a wrong one is most likely meant to be; null if none is near. */
export function nearestOf(name: string, known: readonly string[]): string | null {
  checkText('nearestOf', 'the name', name);
  if (!Array.isArray(known)) throw wrongArgument('nearestOf', 'the known names', 'a list', known);
  const meant = synonyms.get(name.toLowerCase())?.find((synonym) => known.includes(synonym));
  if (meant !== undefined) return meant;
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  const distances = known.map((candidate) => edits(plain(name), plain(candidate)));
  const least = Math.min(...distances);
  return least <= Math.max(1, name.length / 2) ? known[distances.indexOf(least)]! : null;
}

/** The edits between two words; two letters that have changed places, the commonest of slips, are one. */
function edits(a: string, b: string): number {
  const letters = (word: string) => [...word].sort().join('');
  return distance(a, b) - Number(a !== b && letters(a) === letters(b));
}
