import { displayWidth } from './display-width.ts';
import { printable } from './printable.ts';
import { shorten } from './shorten.ts';

/** Characters of a cell, a heading or a note. */
const LONGEST_TEXT = 1000;

/** Stands for a space at which no line breaks, until all lines are laid out; no text that is shown has it. */
const BOND = '\ue000';
const UNIT = /(?<=\d) (?=(?:[nµm]?s|min|h|[KMGTP]?i?B|[MGTP]?FLOPs?|[MG]Hz|W|%)(?![\p{L}\d]))/gu;

/** Without what would move the cursor, but for line breaks; no text fills the screen. */
export function ofTerminal(text: string): string {
  return shorten(printable(text).replace(/\r\n?/g, '\n').replaceAll('\t', ' '), LONGEST_TEXT);
}

/** The same text, in which no line breaks in a number with its unit or between backticks; `unbound` gives the spaces back. */
export function bound(text: string): string {
  return text.replace(UNIT, BOND).replace(/`[^`\n]*`/g, (code) => code.replaceAll(' ', BOND));
}

export function unbound(text: string): string {
  return text.replaceAll(BOND, ' ');
}

/**
 * `text` in lines of at most `width` columns, broken at words but never between a number and its unit, nor in a command
 * between backticks. Lines after the first begin with `indent`. What is wider than a line stays whole.
 */
export function wrapWords(text: string, width: number, indent = ''): string {
  const wrapLine = (line: string) =>
    line.split(' ').reduce((lines, word) => {
      const last = lines.slice(lines.lastIndexOf('\n') + 1);
      return `${lines}${displayWidth(`${last} ${word}`) <= width ? ' ' : `\n${indent}`}${word}`;
    });
  return unbound(bound(text).split('\n').map(wrapLine).join(`\n${indent}`));
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
