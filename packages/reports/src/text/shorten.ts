/** The beginning of a long name says more than its end: it keeps two thirds. */
export function shorten(text: string, longest = Infinity): string {
  if (text.length <= longest) return text;
  const head = Math.ceil((longest * 2) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (longest - head - 1))}`;
}
