import { type TextCuts, placeOf } from './text-cuts.ts';
import type { TextChunk } from './tokenizers.ts';

/** Cuts a text that comes in pieces, of which none need end where it may be cut; without cuts the whole is one chunk. */
export function* chunksOfText(
  pieces: Iterable<string>,
  cuts: TextCuts | null,
  isStart: boolean,
): Generator<TextChunk<string>> {
  let [rest, searched] = ['', 0];
  for (const piece of pieces) {
    rest += piece;
    const at = cuts === null ? 0 : lastCut(rest, searched, cuts);
    searched = rest.length;
    if (at === 0) continue;
    yield { content: rest.slice(0, at), isStart };
    rest = rest.slice(at);
    [searched, isStart] = [rest.length, false];
  }
  if (rest !== '') yield { content: rest, isStart };
}

/** The last place where a text may be cut; 0 for none. Those that lie within `searched` characters from its start have been looked at. */
function lastCut(text: string, searched: number, { classes, table }: TextCuts): number {
  const classAt = (index: number) => classes[text.charCodeAt(index)]!;
  for (let at = text.length - 2; at >= Math.max(2, searched - 1); at--)
    if (table[placeOf(classAt(at - 2), classAt(at - 1), classAt(at), classAt(at + 1))] === 1) return at;
  return 0;
}
