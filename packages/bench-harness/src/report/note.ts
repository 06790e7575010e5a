import type { Block } from '@roofline/reports';

/** A remark among the blocks of a report. */
export type Note = Extract<Block, { kind: 'note' }>;
