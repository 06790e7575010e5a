import type { JsonObject } from '../records/json.ts';

/** What a cell may know besides its own parameters. */
export interface CellContext<Settings extends JsonObject> {
  readonly settings: Settings;
  /** The device to measure on, resolved: `cpu`, `cuda:0`. */
  readonly deviceLabel: string;
  /** Updates the progress display; `done` of `total` steps. Throws when no one listens any more. */
  progress(done: number, total: number, message?: string): void;
}

/** Work that runs in a process of its own. */
export interface CellTask<Cell extends JsonObject, Settings extends JsonObject, Result extends JsonObject> {
  readonly name: string;
  /** Runs in the cell's process. A throw becomes a row that says so. */
  measure(cell: Cell, context: CellContext<Settings>): Result | Promise<Result>;
}

/** A task of any parameters and results. */
export type AnyTask = CellTask<JsonObject, JsonObject, JsonObject>;
