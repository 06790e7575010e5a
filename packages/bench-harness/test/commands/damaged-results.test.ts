import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyRecord, toyResult } from '../fixtures/records.ts';
import { runMain } from '../fixtures/run-main.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const line = (record: object) => `${JSON.stringify(record)}\n`;
const sound = line(toyRecord());
const packages = { '@roofline/bench-harness': '9.9.9' };
const unreadable = toyRecord(
  { context: 32 },
  { result: { ...toyResult(), deviceMs: 'fast' }, environment: { ...toyEnvironment, packages } },
);

/** A folder whose `results.jsonl` holds `text`, and the path of that file. */
function folderOf(text: string) {
  const folder = temporaryFolder();
  const path = join(folder, 'results.jsonl');
  writeFileSync(path, text);
  return { folder, path };
}

describe.each<[string, string, RegExp]>([
  [
    'a line that was cut off',
    `${sound.slice(0, 300)}\n${sound}`,
    /results\.jsonl:1 is not JSON, as if it had been cut off.*Mend the line, or move it/,
  ],
  [
    'a record of a newer schema',
    `${sound}${line({ ...toyRecord({ context: 32 }), schemaVersion: 2 })}`,
    /results\.jsonl:2 was written by a newer Roofline.*Update @roofline\/bench-harness/,
  ],
  [
    'a record of another benchmark',
    line(toyRecord({}, { benchmark: 'later' })),
    /results\.jsonl:1 belongs to a benchmark later, which this version does not have.*Read it with/,
  ],
  [
    'a result that its benchmark does not read',
    `${sound}${line(unreadable)}`,
    /results\.jsonl:2 is no record of e2e that this version reads \(it\.deviceMs: .*\); 9\.9\.9 wrote it\. Read it with/,
  ],
  [
    'parameters that its benchmark does not read',
    line(toyRecord({}, { parameters: { size: 3 } })),
    /results\.jsonl:1 is no record of e2e that this version reads \(it\.size: /,
  ],
])('of a folder with %s', (_, text, message) => {
  it.each(['report', 'compare'])('%s names the line and the remedy, and changes nothing', async (command) => {
    const { folder, path } = folderOf(text);
    const { exitCode, stdout, stderr } = await runMain(
      command === 'report' ? [command, folder] : [command, folder, folder],
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).toContain(path);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

it.each(['report', 'compare'])(
  '%s reports a last record that was torn, and reads the others',
  async (name) => {
    const { folder, path } = folderOf(`${sound}${sound.slice(0, 300)}`);
    const { exitCode, stderr } = await runMain(name === 'report' ? [name, folder] : [name, folder, folder]);
    expect(exitCode).toBe(0);
    expect(stderr).toContain(`${path}:2 is the beginning of a record`);
  },
);

it('names a file of records of another name, where a folder has no other', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'before.jsonl'), sound);
  const { exitCode, stderr } = await runMain(['compare', folder, folder]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(
    `holds no results: name one of its files, such as ${join(folder, 'before.jsonl')}.`,
  );
  const empty = join(folder, 'empty.jsonl');
  writeFileSync(empty, '');
  expect((await runMain(['compare', empty, empty])).stderr).toContain(
    `${empty} holds no results: the file is empty.`,
  );
});

it('says so where a folder of that name is in place of the file', async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'results.jsonl'));
  const { exitCode, stderr } = await runMain(['report', folder]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining('is no file. Remove it'),
  });
});
