import { displayWidth } from './display-width.ts';
import { printable } from './printable.ts';
import { shorten } from './shorten.ts';

/** Characters of a cell, a heading or a note. */
const LONGEST_TEXT = 1000;

/** Without what would move the cursor, but for line breaks; no text fills the screen. */
export function ofTerminal(text: string): string {
  return shorten(printable(text).replace(/\r\n?/g, '\n').replaceAll('\t', ' '), LONGEST_TEXT);
}

/** Broken into lines of at most `width` columns, but for words that are longer. */
export function wrapWords(text: string, width: number): string {
  const wrapLine = (line: string) =>
    line.split(' ').reduce((lines, word) => {
      const last = lines.slice(lines.lastIndexOf('\n') + 1);
      return `${lines}${displayWidth(`${last} ${word}`) <= width ? ' ' : '\n'}${word}`;
    });
  return text.split('\n').map(wrapLine).join('\n');
}

/** With line breaks in those words that alone are wider than `width`, which wrapping at words could not place. */
export function breakLongWords(text: string, width: number): string {
  return text.replace(/\S+/g, (word) => (displayWidth(word) <= width ? word : inPieces(word, width)));
}

function inPieces(word: string, width: number): string {
  let lines = '';
  let used = 0;
  for (const character of word) {
    const columns = displayWidth(character);
    const isFull = used + columns > width && used > 0;
    lines += isFull ? `\n${character}` : character;
    used = (isFull ? 0 : used) + columns;
  }
  return lines;
}
