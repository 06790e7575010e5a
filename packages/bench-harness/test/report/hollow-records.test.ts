import { readdirSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { UsageError } from '../../src/errors.ts';
import type { Json, JsonObject } from '../../src/records/json.ts';
import type { CellRecord } from '../../src/records/record.ts';
import { readResults } from '../../src/records/results-folder.ts';
import { reportOfRecords } from '../../src/report/report-of-records.ts';

const published = fileURLToPath(new URL('../../../../docs/results', import.meta.url));

/** One published record of each benchmark that timed something. */
const timed = new Map(
  readdirSync(published)
    .map((name) => join(published, name))
    .filter((folder) => existsSync(join(folder, 'results.jsonl')))
    .flatMap(readResults)
    .filter(({ result }) => result !== null && /Ms"|hostUs"/.test(JSON.stringify(result)))
    .map((record) => [record.benchmark, record]),
);

/** The same with every list empty. */
function hollow(value: Json): Json {
  if (Array.isArray(value)) return [];
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, hollow(member)]));
}

it.each([...timed])('a record of %s whose result is empty is refused in words', async (_name, record) => {
  const results: (JsonObject | null)[] = [{}, null, hollow(record.result) as JsonObject];
  for (const result of results) {
    const changed: CellRecord = { ...record, result };
    await expect(reportOfRecords([changed])).rejects.toThrow(UsageError);
    await expect(reportOfRecords([changed])).rejects.toThrow(
      /no record of \w+ that this version reads .*Read it with the version that wrote it/,
    );
  }
});

it.each(['e2e', 'flash', 'attention', 'allreduce'])('a time of 0 of %s is refused in words', async (name) => {
  const record = timed.get(name)!;
  const text = JSON.stringify(record.result).replace(/("(?:deviceMs|maxMs|both)":\[)[^,\]]+/, '$1 0');
  await expect(reportOfRecords([{ ...record, result: JSON.parse(text) as JsonObject }])).rejects.toThrow(
    /\[0\]: a time of 0 or less was not measured\).* Read it with the version that wrote it/,
  );
});

it('there are such records', () => {
  expect([...timed.keys()]).toEqual(expect.arrayContaining(['e2e', 'memory', 'overhead', 'profile']));
});
