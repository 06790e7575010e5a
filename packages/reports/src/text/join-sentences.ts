/** One after the other, what is missing left out. The last one ends as it does, those before it by a full stop. */
export function joinSentences(sentences: readonly (string | undefined)[]): string {
  const said = sentences.filter((sentence) => sentence !== undefined && sentence !== '');
  return said
    .map((sentence, i) => (i < said.length - 1 && !/[.!?:;]$/.test(sentence!) ? `${sentence}.` : sentence))
    .join(' ');
}
