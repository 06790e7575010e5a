import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { watchReport } from '../../src/report/watch-report.ts';
import { toyRecord } from '../fixtures/records.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

it('writes the report anew with each record that comes, and at its end a page that stays as it is', async () => {
  const folder = join(temporaryFolder(), 'sweep');
  const [stop, seen, hindrances] = [new AbortController(), [] as number[], [] as string[]];
  const page = () => readFileSync(join(folder, 'report.html'), 'utf8');
  const add = (size: string) =>
    appendFileSync(
      join(folder, 'results.jsonl'),
      `${JSON.stringify({ ...toyRecord({ size }), key: size })}\n`,
    );
  const end = watchReport({
    ...{ paths: [folder], out: folder, signal: stop.signal },
    onWritten: (_, cells) => seen.push(cells),
    onHindrance: (message) => hindrances.push(message),
  });
  mkdirSync(folder);
  add('small');
  await expect.poll(() => seen).toEqual([1]);
  expect(page()).toContain('<meta http-equiv="refresh" content="2">');
  add('xl');
  await expect.poll(() => seen).toEqual([1, 2]);
  stop.abort();
  await end;
  expect(page()).toContain('>xl<');
  expect(page()).not.toContain('http-equiv="refresh"');
  expect(hindrances.every((message) => /does not exist|holds no results/.test(message))).toBe(true);
});
