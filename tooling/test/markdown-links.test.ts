import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
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

const anchors = new Map<string, Set<string>>();

/** What GitHub gives the headings of a page (words in lower case, and a number where they come again), and anchors. */
function anchorsOf(file: string): Set<string> {
  const known = anchors.get(file);
  if (known) return known;
  const page = readFileSync(join(root, file), 'utf8').replace(/^```[\s\S]*?^```/gm, '');
  const found = new Set<string>();
  const counts = new Map<string, number>();
  for (const [, heading = ''] of page.matchAll(/^#{1,6} +(.+)$/gm)) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/\\(.)/g, '$1');
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = counts.get(slug) ?? 0;
    counts.set(slug, times + 1);
    found.add(times === 0 ? slug : `${slug}-${times}`);
  }
  for (const [, id = ''] of page.matchAll(/<a id="([^"]+)">/g)) found.add(id);
  anchors.set(file, found);
  return found;
}

/** Whether a link of `file` leads to a file of the repository, and its anchor to a heading there. */
function isAlive(file: string, link: string): boolean {
  if (link.includes('://')) return true;
  const [path = '', anchor] = link.split('#');
  const target = path === '' ? file : normalize(join(dirname(file), path));
  if (!leadsToTracked(target)) return false;
  if (anchor === undefined || !target.endsWith('.md') || !existsSync(join(root, target))) return true;
  return anchorsOf(target).has(anchor);
}

it.each(tracked.filter((file) => file.endsWith('.md')))(
  'the links of %s lead to files and headings',
  (file) => {
    const page = readFileSync(join(root, file), 'utf8').replace(/^```[\s\S]*?^```/gm, '');
    const links = [...page.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(
      ([, link, source]) => (link ?? source)!,
    );
    const dead = links.filter((link) => !isAlive(file, link));
    expect(dead).toEqual([]);
  },
);
