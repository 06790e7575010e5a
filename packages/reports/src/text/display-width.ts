const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u;
const COMBINING = /[\p{Mark}\u200b-\u200d\ufeff]/u;
// oxlint-disable-next-line no-control-regex -- the escape character begins a colour
const COLOR = /\u001b\[\d+m/g;

/** The columns a line of text takes in a terminal: East Asian characters and emoji take two, colours none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replace(COLOR, '')) {
    if (WIDE.test(character)) width += 2;
    else if (!COMBINING.test(character)) width += 1;
  }
  return width;
}

export function longestWordWidth(text: string): number {
  return Math.max(...text.split(/\s+/).map(displayWidth));
}
