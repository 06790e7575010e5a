import { writeSync } from 'node:fs';
import { z } from 'zod';
import type { JsonObject } from '../records/json.ts';
import { cellError } from '../records/record.ts';

/**
 * The file descriptor on which a cell's process reports. Its own one, so that whatever is printed to stdout or
 * stderr cannot be taken for a report; and written synchronously, so that a crash right after loses nothing.
 */
export const EVENT_DESCRIPTOR = 3;

/** One line of JSON on the cell's stdin, for each job one. */
export interface CellJob {
  /** The name of a built-in task, or the `file:` URL of a module whose default export is a `CellTask`. */
  readonly task: string;
  readonly parameters: JsonObject;
  readonly settings: JsonObject;
  readonly deviceLabel: string;
  /** Whether the process waits for another job after this one, if this one leaves nothing on the device. */
  readonly goesOn?: boolean;
}

/** One line of JSON each on the cell's event descriptor. */
export const cellEvent = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('progress'),
    done: z.number(),
    total: z.number(),
    message: z.string().optional(),
  }),
  z.object({
    type: z.literal('result'),
    result: z.record(z.string(), z.json()),
    /** Whether the process waits for another job. */
    goesOn: z.boolean().optional(),
  }),
  z.object({ type: z.literal('error'), error: cellError }),
]);
export type CellEvent = z.infer<typeof cellEvent>;

/** Throws EPIPE when the runner is gone. */
export function sendEvent(event: CellEvent): void {
  let bytes = Buffer.from(`${JSON.stringify(event)}\n`);
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(EVENT_DESCRIPTOR, bytes));
}
