import { formatDuration } from '@roofline/reports';
import { createColors } from 'picocolors';
import type { SweepObserver } from '../runner/sweep.ts';
import type { CellStatus } from '../records/record.ts';
import { firstLine } from '../report/values-in-words.ts';
import { withoutCodes } from './output.ts';
import { canRewrite, hasColors, widthOf, type TerminalStream } from './terminal.ts';

/** Where progress is shown; stderr, or a stand-in. */
export interface ProgressStream extends TerminalStream {
  write(text: string): unknown;
}

const ERASE_LINE = '\r\u001b[2K';

const symbols = { ok: '✓', failed: '✗', timeout: '✗', 'out-of-memory': '!' } as const;
const symbolColors = { ok: 'green', failed: 'red', timeout: 'red', 'out-of-memory': 'yellow' } as const;

/** Characters of an error next to its cell; the record has all of it. */
const LONGEST_REASON = 300;

function reasonOf(message: string): string {
  const line = firstLine(message);
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}…` : line;
}

/**
 * One line for each finished cell; on a terminal also a status line below them, which is rewritten in place.
 */
export class ProgressDisplay implements SweepObserver {
  readonly #stream: ProgressStream;
  #total = 0;
  #current = '';

  constructor(stream: ProgressStream = process.stderr) {
    this.#stream = stream;
  }

  /** Shows what is being done; on a terminal only. */
  status(text: string): void {
    if (!canRewrite(this.#stream)) return;
    const width = widthOf(this.#stream) - 1;
    this.#stream.write(`${ERASE_LINE}${withoutCodes(text).replaceAll('\n', ' ').slice(0, width)}`);
  }

  clear(): void {
    if (canRewrite(this.#stream)) this.#stream.write(ERASE_LINE);
  }

  line(text: string): void {
    this.clear();
    this.#stream.write(`${text}\n`);
  }

  sweepStarted(total: number, kept: number): void {
    this.#total = total;
    const cells = total === 1 ? 'cell was measured before and is' : 'cells were measured before and are';
    if (kept > 0) this.line(`${kept} of ${total} ${cells} kept.`);
  }

  preparing(text: string): void {
    this.status(text);
  }

  prepared(text: string): void {
    this.line(text);
  }

  cellStarted(description: string, index: number): void {
    this.#current = `[${index}/${this.#total}] ${description}`;
    this.status(`${this.#current} · starting`);
  }

  cellProgressed(done: number, total: number, message = ''): void {
    this.status(`${this.#current} · ${message} ${done}/${total}`);
  }

  cellFinished(record: Parameters<NonNullable<SweepObserver['cellFinished']>>[0]): void {
    const reason = record.error ? `: ${reasonOf(record.error.message)}` : '';
    const outcome = record.status === 'ok' ? formatDuration(record.durationMs) : record.status + reason;
    this.line(`${this.#symbolOf(record.status)} ${withoutCodes(`${this.#current} · ${outcome}`)}`);
  }

  #symbolOf(status: CellStatus): string {
    return createColors(hasColors(this.#stream))[symbolColors[status]](symbols[status]);
  }
}
