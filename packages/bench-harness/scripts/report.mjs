// `turbo run report`: one page of all that the bench tasks have measured.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const results = fileURLToPath(new URL('../../../results', import.meta.url));
const names = existsSync(results) ? readdirSync(results) : [];
const folders = names
  .filter((name) => name.startsWith('bench-') && existsSync(join(results, name, 'results.jsonl')))
  .map((name) => join(results, name));
const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
const words = [cli, 'report', ...folders, '--out', join(results, 'report'), ...process.argv.slice(2)];
process.exitCode = spawnSync(process.execPath, words, { stdio: 'inherit' }).status ?? 1;
