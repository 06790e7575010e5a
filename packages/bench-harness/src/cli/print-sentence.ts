import { renderSentence } from '@roofline/reports';
import { asCalled } from './invocation.ts';
import { printLine, tell } from './output.ts';
import { hasWidth, widthOf } from './terminal.ts';

/** A sentence below a table, broken at words. */
export function printSentence(text: string): void {
  printLine(inLines(text, process.stdout));
}

/** Prose of a report, without its markup. */
export function printProse(prose: string): void {
  const plain = prose.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1').replaceAll('**', '');
  printLine(inLines(plain, process.stdout).replaceAll('`', ''));
}

/** A sentence next to the result, on stderr. */
export function tellSentence(text: string): void {
  tell(inLines(text, process.stderr));
}

/** Without a width to fit into, as in a log, a sentence is a line. */
function inLines(text: string, stream: NodeJS.WriteStream): string {
  const called = asCalled(text);
  return hasWidth(stream) ? renderSentence(called, { width: widthOf(stream) }).slice(0, -1) : called;
}
