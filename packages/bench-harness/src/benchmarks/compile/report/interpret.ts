import type { CellRecord } from '../../../records/record.ts';
import { compileCell, type CompileCell } from '../parameters.ts';
import { compileResult, type CompileResult } from '../result.ts';

/** A record and what it says. `result` is null unless its status is `ok`. */
export interface CompileMeasurement {
  readonly cell: CompileCell;
  readonly record: CellRecord;
  readonly result: CompileResult | null;
}

export function interpretCompile(record: CellRecord): CompileMeasurement {
  const result = record.status === 'ok' ? compileResult.parse(record.result) : null;
  return { cell: compileCell.parse(record.parameters), record, result };
}
