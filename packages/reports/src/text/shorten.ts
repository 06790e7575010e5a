/** The beginning of a long name says more than its end: it keeps two thirds. */
export function shorten(text: string, longest = Infinity): string {
  if (text.length <= longest) return text;
  const head = Math.ceil((longest * 2) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (longest - head - 1))}`;
}

/** By how many characters more are kept of names that would read alike. */
const MORE = 8;

/** Characters, at least `least`, that keep different texts apart when they are shortened. */
export function lengthThatParts(texts: readonly string[], least: number): number {
  const names = [...new Set(texts)].filter(({ length }) => length > least);
  let length = least;
  while (new Set(names.map((name) => shorten(name, length))).size < names.length) length += MORE;
  return length;
}
