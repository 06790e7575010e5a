import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const example = fileURLToPath(new URL('../examples/add.mjs', import.meta.url));

/** What the README's first program prints, run with these flags of Node.js. */
export function runExample(flags: readonly string[] = []): string {
  const words = ['--conditions=roofline-source', '--disable-warning=ExperimentalWarning', ...flags, example];
  return execFileSync(process.execPath, words, { encoding: 'utf8' });
}

/** The first of 0.5, 1.5 and so on. */
export const printedByExample = 'Float32Array(4) [ 0.5, 1.5, 2.5, 3.5 ]\n';
