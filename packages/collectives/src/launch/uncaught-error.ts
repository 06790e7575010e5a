/** How Node.js begins to write an error that nothing caught: a place, the line there, and a mark below. */
const placeLine = /^(?:file:\/\/|node:|\/|[A-Za-z]:[\\/]|\[eval\]).*:\d+$/;
const markLine = /^\s*\^+\s*$/;
/** How it ends. */
const versionLine = /^Node\.js v\d/;
/** How an error begins, among words of other kinds. */
const errorLine = /^[\w.]*(?:Error|Exception)\b/;
const traceHint = '(Use `node --trace-uncaught';

/** Whether lines may be the beginning of what Node.js writes of an error that nothing caught; some have a blank line first. */
export function mayBeUncaught(lines: readonly string[]): boolean {
  const [place, , mark] = withoutBlank(lines);
  return (place === undefined || placeLine.test(place)) && (mark === undefined || markLine.test(mark));
}

/**
 * Of what Node.js wrote of an error that nothing caught, the error itself: its message, the frames of its stack that are
 * not inside of Node.js, and its members. Null for lines that are not one.
 */
export function uncaughtError(written: readonly string[]): readonly string[] | null {
  const lines = withoutBlank(written);
  const end = lines.findLastIndex((line) => versionLine.test(line));
  if (end < 3 || !mayBeUncaught(lines)) return null;
  const text = withoutNode(messageOf(lines.slice(3, end)));
  const isPlaced = text.some(isFrame) || lines[0]!.startsWith('node:');
  return isPlaced ? text : [...text, `    at ${lines[0]}`];
}

function withoutBlank(lines: readonly string[]): readonly string[] {
  return lines[0] === '' ? lines.slice(1) : lines;
}

/** Without what is between the mark and the error: more of the program, where it is a fault of syntax. */
function messageOf(lines: readonly string[]): readonly string[] {
  const start = lines.findIndex((line, index) => errorLine.test(line) && (lines[index - 1] ?? '') === '');
  const rest = start < 0 ? [...lines] : lines.slice(start);
  while (rest.at(-1) === '') rest.pop();
  while (rest[0] === '') rest.shift();
  return rest;
}

/** Without frames inside of Node.js; the members that follow the last frame stay. */
function withoutNode(lines: readonly string[]): string[] {
  const kept: string[] = [];
  for (const line of lines) {
    if (line.startsWith(traceHint)) continue;
    if (!isFrame(line) || !/[( ]node:/.test(line)) kept.push(line);
    else if (line.endsWith(' {') && kept.length > 0) kept[kept.length - 1] += ' {';
  }
  while (kept.at(-1) === '') kept.pop();
  return kept;
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}
