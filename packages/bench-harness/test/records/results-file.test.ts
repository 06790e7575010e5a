import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readResultsFile, ResultsWriter } from '../../src/records/results-file.ts';
import { outOfMemoryRecord, toyRecord } from '../fixtures/records.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

function write(path: string, ...records: Parameters<ResultsWriter['append']>[0][]): void {
  const writer = new ResultsWriter(path);
  records.forEach((record) => writer.append(record));
  writer.close();
}

describe('results file', () => {
  it('gives back what was appended, over several writers', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    const records = [toyRecord(), outOfMemoryRecord({ context: 32 })];
    expect(readResultsFile(path)).toEqual([]);
    write(path, records[0]!);
    write(path, records[1]!);
    expect(readResultsFile(path)).toEqual(records);
  });

  it('drops a torn last line on reading, and cuts it off before the next append', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    write(path, toyRecord());
    appendFileSync(path, JSON.stringify(toyRecord({ context: 32 })).slice(0, 200));
    expect(readResultsFile(path)).toEqual([toyRecord()]);
    write(path, toyRecord({ context: 64 }));
    expect(readResultsFile(path)).toEqual([toyRecord(), toyRecord({ context: 64 })]);
    expect(readFileSync(path, 'utf8').endsWith('\n')).toBe(true);
  });

  it('names the line that it cannot read', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    write(path, toyRecord());
    appendFileSync(path, 'not json\n');
    expect(() => readResultsFile(path)).toThrow(/results\.jsonl:2 is not JSON/);
  });

  it('refuses records of another schema version', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    appendFileSync(path, `${JSON.stringify({ ...toyRecord(), schemaVersion: 99 })}\n`);
    expect(() => readResultsFile(path)).toThrow(/:1 is not a record that this version reads \(schemaVersion/);
  });
});
