import { stripVTControlCharacters } from 'node:util';

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u;
const COMBINING = /[\p{Mark}\u200b-\u200d\ufeff]/u;

/** The columns a line of text takes in a terminal: East Asian characters and emoji take two, colours none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of stripVTControlCharacters(text)) {
    if (WIDE.test(character)) width += 2;
    else if (!COMBINING.test(character)) width += 1;
  }
  return width;
}

export function longestWordWidth(text: string): number {
  return Math.max(...text.split(/\s+/).map(displayWidth));
}
