import { formatDuration } from '@roofline/reports';
import { createColors } from 'picocolors';
import type { SweepObserver } from '../runner/sweep.ts';
import type { CellStatus } from '../records/record.ts';
import { firstLine } from '../report/values-in-words.ts';
import { withoutCodes } from './output.ts';
import { canRewrite, ERASE_LINE, hasColors, widthOf, type TerminalStream } from './terminal.ts';
import { TimeLeft } from './time-left.ts';

/** Where progress is shown; stderr, or a stand-in. */
export interface ProgressStream extends TerminalStream {
  write(text: string): unknown;
}

const symbols = { ok: '✓', failed: '✗', timeout: '✗', 'out-of-memory': '!' } as const;
const symbolColors = { ok: 'green', failed: 'red', timeout: 'red', 'out-of-memory': 'yellow' } as const;

/** Characters of an error next to its cell; the record has all of it. */
const LONGEST_REASON = 300;

function reasonOf(message: string): string {
  const line = firstLine(message);
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}…` : line;
}

/** How often the status line is rewritten, to show that work goes on. */
const TICK_MS = 1000;
/** What has not changed for so long shows for how long. */
const SILENCE_MS = 2000;

/**
 * One line for each finished cell; on a terminal also a status line below them, which is rewritten in place, at least every
 * second: with the time left of what takes more than ten, as soon as it is known, else the time since it changed.
 */
export class ProgressDisplay implements SweepObserver, Disposable {
  readonly #stream: ProgressStream;
  readonly #timeLeft = new TimeLeft();
  #total = 0;
  #current = '';
  #shown = '';
  #shownSinceMs = 0;
  #ticking: NodeJS.Timeout | undefined;

  constructor(stream: ProgressStream = process.stderr) {
    this.#stream = stream;
  }

  /** Shows what is being done, how much of it is, and `details` that change meanwhile; on a terminal only. */
  status(text: string, done?: number, total?: number, details = ''): void {
    const isCounted = done !== undefined && total !== undefined;
    if (!isCounted || done === 0) {
      this.#timeLeft.started(1, performance.now());
      this.#timeLeft.cellStarted(performance.now());
    }
    if (isCounted) this.#timeLeft.cellProgressed(done, total, text, performance.now());
    this.#show(isCounted ? `${text} ${done}/${total}${details}` : text);
  }

  clear(): void {
    clearInterval(this.#ticking);
    this.#ticking = undefined;
    if (canRewrite(this.#stream)) this.#stream.write(ERASE_LINE);
  }

  [Symbol.dispose](): void {
    this.clear();
  }

  line(text: string): void {
    this.clear();
    this.#stream.write(`${text}\n`);
  }

  sweepStarted(total: number, kept: number): void {
    this.#total = total;
    this.#timeLeft.started(total - kept, performance.now());
    const cells = total === 1 ? 'cell was measured before and is' : 'cells were measured before and are';
    if (kept > 0) this.line(`${kept} of ${total} ${cells} kept.`);
  }

  preparing(text: string): void {
    this.#show(text);
  }

  prepared(text: string): void {
    this.line(text);
  }

  cellStarted(description: string, index: number): void {
    this.#current = `[${index}/${this.#total}] ${description}`;
    this.#timeLeft.cellStarted(performance.now());
    this.#show(`${this.#current} · starting`);
  }

  cellProgressed(done: number, total: number, message = ''): void {
    this.#timeLeft.cellProgressed(done, total, message, performance.now());
    this.#show(`${this.#current} · ${message} ${done}/${total}`);
  }

  cellFinished(record: Parameters<NonNullable<SweepObserver['cellFinished']>>[0]): void {
    this.#timeLeft.cellFinished(performance.now());
    const reason = record.error ? `: ${reasonOf(record.error.message)}` : '';
    const outcome = record.status === 'ok' ? formatDuration(record.durationMs) : record.status + reason;
    this.line(`${this.#symbolOf(record.status)} ${withoutCodes(`${this.#current} · ${outcome}`)}`);
  }

  #show(text: string): void {
    if (!canRewrite(this.#stream)) return;
    if (text !== this.#shown) [this.#shown, this.#shownSinceMs] = [text, performance.now()];
    this.#draw();
    this.#ticking ??= setInterval(() => this.#draw(), TICK_MS).unref();
  }

  /** The times stay where a long text is cut. */
  #draw(): void {
    const nowMs = performance.now();
    const silentMs = nowMs - this.#shownSinceMs;
    const elapsed = silentMs < SILENCE_MS ? null : `${Math.floor(silentMs / 1000)} s`;
    const time = this.#timeLeft.inWords(nowMs) ?? elapsed;
    const end = time === null ? '' : ` · ${time}`;
    const room = Math.max(0, widthOf(this.#stream) - 1 - end.length);
    const text = withoutCodes(this.#shown).replaceAll('\n', ' ').slice(0, room);
    this.#stream.write(`${ERASE_LINE}${text}${end}`);
  }

  #symbolOf(status: CellStatus): string {
    return createColors(hasColors(this.#stream))[symbolColors[status]](symbols[status]);
  }
}
