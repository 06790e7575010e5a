import { asCalled } from './invocation.ts';
import { canRewrite, ERASE_LINE } from './terminal.ts';

/** What would clear a screen, move the cursor or turn the direction of text; records may hold anything. */
const CONTROL = /(?![\t\n])[\p{Cc}\p{Bidi_Control}]/gu;

/** A text as it may be written to a terminal. */
export function withoutCodes(text: string): string {
  return text.replace(CONTROL, '\ufffd');
}

/** Machine output: the only thing on stdout under --json. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value, null, 2);
  process.stdout.write(
    `${json.replace(CONTROL, (code) => `\\u${code.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`,
  );
}

export function printLine(text = ''): void {
  process.stdout.write(`${withoutCodes(asCalled(text))}\n`);
}

/**
 * What people want to know while they wait, or besides the result; never mixed into piped output. A status line that
 * stands there gives way.
 */
export function tell(text: string): void {
  const erased = canRewrite(process.stderr) ? ERASE_LINE : '';
  process.stderr.write(`${erased}${withoutCodes(asCalled(text))}\n`);
}

const output = new AbortController();

/** Aborts when stdout or stderr takes no more; its reason is the error. A sweep then ends as on Ctrl-C. */
export const outputClosed: AbortSignal = output.signal;

/** What is written to a stream that takes no more is dropped; no exception ends the program in the middle of its work. */
export function surviveClosedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', (error) => output.abort(error));
}

/** Why the output was not written; null where it was, or where its reader went away (`| head`), which is no error. */
export function outputProblem(): string | null {
  if (!outputClosed.aborted) return null;
  const { code, message } = outputClosed.reason as NodeJS.ErrnoException;
  return isReaderGone(code) ? null : message;
}

/** EIO is that of a terminal that was closed; a stream that has failed once is destroyed. */
function isReaderGone(code: string | undefined): boolean {
  return code === 'EPIPE' || code === 'EIO' || code === 'ERR_STREAM_DESTROYED';
}
