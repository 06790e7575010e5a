import type { RankResult } from './result.ts';

/** What a rank reports to the cell that started it. */
export type RankEvent =
  | { readonly type: 'progress'; readonly done: number; readonly total: number; readonly name: string }
  | { readonly type: 'result'; readonly result: RankResult };
