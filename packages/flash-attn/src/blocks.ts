import type { AttentionSizes } from './operands.ts';
import type { AttentionSettings } from './options.ts';

/** Part of a sequence: from `start` up to, not including, `end`. */
export interface Block {
  readonly start: number;
  readonly end: number;
}

/** A sequence cut into blocks of `size`, the last of which may be shorter. */
export function blocksOf(length: number, size: number): Block[] {
  const count = Math.ceil(length / size);
  return Array.from({ length: count }, (_, i) => ({
    start: i * size,
    end: Math.min((i + 1) * size, length),
  }));
}

type MaskedSizes = Pick<AttentionSizes, 'queries' | 'keys'> & Pick<AttentionSettings, 'causal'>;

/** The keys below this one are all that a block of queries sees. */
export function keysSeenBy({ causal, queries, keys }: MaskedSizes, { end }: Block): number {
  return causal ? Math.min(Math.max(end + keys - queries, 0), keys) : keys;
}

/** Whether each query of a block sees each key of another. */
export function seesAll({ causal, queries, keys }: MaskedSizes, rows: Block, columns: Block): boolean {
  return !causal || columns.end <= rows.start + keys - queries + 1;
}
