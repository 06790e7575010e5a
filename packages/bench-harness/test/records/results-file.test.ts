import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ResultsFileError, UsageError } from '../../src/errors.ts';
import { placeOf } from '../../src/records/record-places.ts';
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

  it('cuts off what was torn in the middle of a character', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    const [whole, torn] = ['größe', '屋根'].map((size) => toyRecord({ size }));
    write(path, whole!);
    const bytes = Buffer.from(JSON.stringify(torn));
    appendFileSync(path, bytes.subarray(0, bytes.indexOf(Buffer.from('屋')) + 2));
    write(path, toyRecord());
    expect(readFileSync(path, 'utf8')).toBe(`${JSON.stringify(whole)}\n${JSON.stringify(toyRecord())}\n`);
  });

  it("drops a first record that was torn, unless it might be anybody's", () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    writeFileSync(path, JSON.stringify(toyRecord()).slice(0, 200));
    write(path, toyRecord({ context: 64 }));
    expect(readResultsFile(path)).toEqual([toyRecord({ context: 64 })]);
  });

  it('keeps a last record that lacks only its line break', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    writeFileSync(path, JSON.stringify(toyRecord()));
    expect(readResultsFile(path)).toEqual([toyRecord()]);
    write(path, toyRecord({ context: 64 }));
    expect(readResultsFile(path)).toEqual([toyRecord(), toyRecord({ context: 64 })]);
  });

  it.each([
    ['notes', 'my notes, without a line break'],
    ['a letter', '{'],
    ['JSON of another program', '{"schemaVersion":1,"rows":[]}'],
    ['torn JSON of another program', '{"schemaVersion":1,"rows":['],
    ['notes after a record', `${JSON.stringify(toyRecord())}\nmy notes`],
  ])('refuses %s, and writes nothing there', (_what, text) => {
    const path = join(temporaryFolder(), 'results.jsonl');
    writeFileSync(path, text);
    expect(() => readResultsFile(path)).toThrow(UsageError);
    expect(() => new ResultsWriter(path)).toThrow(UsageError);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('refuses a folder of that name', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    mkdirSync(path);
    expect(() => readResultsFile(path)).toThrow(/is no file\. Remove it/);
    expect(() => new ResultsWriter(path)).toThrow(UsageError);
  });

  it('says that the file was removed, or moved, with all that was appended', () => {
    const folder = temporaryFolder();
    const [path, moved] = [join(folder, 'results.jsonl'), join(folder, 'moved.jsonl')];
    const writer = new ResultsWriter(path);
    writer.append(toyRecord());
    renameSync(path, moved);
    expect(() => writer.append(toyRecord({ context: 64 }))).toThrow(ResultsFileError);
    expect(readResultsFile(moved)).toEqual([toyRecord(), toyRecord({ context: 64 })]);
    rmSync(moved);
    expect(() => writer.append(toyRecord())).toThrow(/was moved or removed while it was written/);
    writer.close();
  });

  it('names the line that it cannot read, with a remedy that gives nothing up', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    write(path, toyRecord());
    appendFileSync(path, 'not json\n');
    expect(() => readResultsFile(path)).toThrow(
      /results\.jsonl:2 is not JSON.*Mend the line, or move it to a file/,
    );
  });

  it('refuses records of a newer version, and says to update', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    appendFileSync(path, `${JSON.stringify({ ...toyRecord(), schemaVersion: 99 })}\n`);
    expect(() => readResultsFile(path)).toThrow(
      /results\.jsonl:1 was written by a newer Roofline: its records have version 99.*Update @roofline\/bench-harness/,
    );
    writeFileSync(path, `${JSON.stringify({ ...toyRecord(), schemaVersion: 0 })}\n`);
    expect(() => readResultsFile(path)).toThrow(/:1 is not a record that this version reads \(schemaVersion/);
  });

  it('reports the line that was torn, and takes zeros after records for one', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    write(path, toyRecord());
    const told: string[] = [];
    readResultsFile(path, (message) => told.push(message));
    expect(told).toEqual([]);
    for (const tail of ['{"schemaVersion":1,"bench', '\0'.repeat(100)]) {
      writeFileSync(path, `${JSON.stringify(toyRecord())}\n${tail}`);
      expect(readResultsFile(path, (message) => told.push(message))).toEqual([toyRecord()]);
      expect(told.pop()).toMatch(/results\.jsonl:2 is the beginning of a record.*measures it again/);
    }
    write(path, toyRecord({ context: 64 }));
    expect(readResultsFile(path)).toEqual([toyRecord(), toyRecord({ context: 64 })]);
  });

  it('reads a file that an editor put a byte order mark before', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    writeFileSync(path, `\uFEFF${JSON.stringify(toyRecord())}\r\n`);
    expect(readResultsFile(path)).toEqual([toyRecord()]);
  });

  // Root reads what no one else may, but no one reads the memory of a process from address 0.
  it.skipIf(platform() !== 'linux')('says so where a file cannot be read', () => {
    expect(() => readResultsFile('/proc/self/mem')).toThrow(UsageError);
    expect(() => readResultsFile('/proc/self/mem')).toThrow(/Cannot read \/proc\/self\/mem \(EIO\)/);
  });

  it('knows where each record is', () => {
    const path = join(temporaryFolder(), 'results.jsonl');
    write(path, toyRecord(), toyRecord({ context: 32 }));
    expect(readResultsFile(path).map(placeOf)).toEqual([`${path}:1`, `${path}:2`]);
    expect(placeOf(toyRecord())).toBeNull();
  });
});
