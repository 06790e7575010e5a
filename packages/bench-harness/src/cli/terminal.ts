/** What is asked of a stream that may be a terminal. */
export interface TerminalStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  /** Honours NO_COLOR, FORCE_COLOR and TERM=dumb; only terminals have it. */
  hasColors?(): boolean;
}

const USUAL_WIDTH = 80;
/** Of what is not a terminal: a log, or what a pager folds. */
const PIPE_WIDTH = 160;

/** Columns of a terminal; some report 0. What is no terminal is as wide as COLUMNS says. */
export function widthOf({ isTTY, columns }: TerminalStream): number {
  if (isTTY) return columns || USUAL_WIDTH;
  return environmentWidth() ?? PIPE_WIDTH;
}

/** Whether a stream is a terminal, or COLUMNS says how wide it is. */
export function hasWidth({ isTTY }: TerminalStream): boolean {
  return Boolean(isTTY) || environmentWidth() !== null;
}

function environmentWidth(): number | null {
  const width = Number(process.env['COLUMNS']);
  return Number.isSafeInteger(width) && width > 0 ? width : null;
}

export function hasColors(stream: TerminalStream): boolean {
  return Boolean(stream.isTTY && stream.hasColors?.());
}

/** Whether a line can be rewritten in place. */
export function canRewrite({ isTTY }: TerminalStream): boolean {
  return Boolean(isTTY) && process.env['TERM'] !== 'dumb';
}

/** Empties the line that the cursor is in. */
export const ERASE_LINE = '\r\u001b[2K';
