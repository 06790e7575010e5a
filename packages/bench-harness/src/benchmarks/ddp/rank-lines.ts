// What ranks report to the cell that started them, on lines of their own among all else that they may print.
import type { RankResult } from './result.ts';

export type RankEvent =
  | { readonly type: 'progress'; readonly done: number; readonly total: number; readonly name: string }
  | { readonly type: 'result'; readonly result: RankResult };

const mark = '@roofline-rank ';

export function sendRankEvent(event: RankEvent): void {
  process.stdout.write(`${mark}${JSON.stringify(event)}\n`);
}

/** The event of a line as a launcher passes it on; null for other output. */
export function readRankEvent(line: string): RankEvent | null {
  const start = line.indexOf(mark);
  return start < 0 ? null : (JSON.parse(line.slice(start + mark.length)) as RankEvent);
}
