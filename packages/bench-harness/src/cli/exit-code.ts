import { EXIT } from '../errors.ts';
import type { CellRecord } from '../records/record.ts';

/** Whether rows that ran out of memory count as an answer, have an exit code of their own, or are failures. */
export const outOfMemoryPolicies = ['ok', 'report', 'fail'] as const;
export type OutOfMemoryPolicy = (typeof outOfMemoryPolicies)[number];

/** 0 all measured, 1 a failure, 3 finished with rows that ran out of memory (0 or 1 by policy). */
export function exitCodeOf(records: readonly CellRecord[], policy: OutOfMemoryPolicy): number {
  if (records.some(({ status }) => status === 'failed' || status === 'timeout')) return EXIT.failure;
  if (records.every(({ status }) => status === 'ok')) return EXIT.ok;
  return { ok: EXIT.ok, report: EXIT.outOfMemory, fail: EXIT.failure }[policy];
}
