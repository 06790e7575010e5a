import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
// What git tracks, because that is all that a clone has: a file may be here and ignored.
const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0');

function leadsToTracked(path: string): boolean {
  const target = normalize(path).replace(/\/$/, '');
  return tracked.some((file) => file === target || file.startsWith(`${target}/`));
}

it.each(tracked.filter((file) => file.endsWith('.md')))(
  'the links of %s lead to files of the repository',
  (file) => {
    const links = [...readFileSync(join(root, file), 'utf8').matchAll(/\]\(([^)#\s]+)/g)].map(
      ([, link]) => link!,
    );
    const dead = links.filter((link) => !link.includes('://') && !leadsToTracked(join(dirname(file), link)));
    expect(dead).toEqual([]);
  },
);
