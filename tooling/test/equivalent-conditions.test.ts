import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { equivalents } from '../conditions/equivalents.ts';
import { groups } from '../conditions/groups.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

it('what is named as a wrong condition that changes nothing stands in the sources, with a reason', () => {
  const sources = groups
    .flatMap((group) => globSync(group.sources, { cwd: root }))
    .map((file) => `${root}${file}`);
  const stale = equivalents.filter(({ file, source, reason }) => {
    const lines = sources
      .filter((path) => path.endsWith(`/${file}`))
      .flatMap((path) => readFileSync(path, 'utf8').split('\n'));
    return reason === '' || !lines.some((line) => line.trim() === source);
  });
  expect(stale).toEqual([]);
});

it('each group names tests that there are', () => {
  const missing = groups
    .flatMap(({ tests }) => tests)
    .filter((pattern) => globSync(pattern, { cwd: root }).length === 0);
  expect(missing).toEqual([]);
});
