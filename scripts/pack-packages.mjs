// Packs all built packages, and ONNX Runtime's library for this machine, as tarballs: what a registry would give a project.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = resolve(process.argv[2] ?? join(root, 'tarballs'));
const library = `./libraries/onnxruntime-${process.platform}-${process.arch}`;
const chosen = ['--filter', './packages/*', '--filter', library];

rmSync(folder, { recursive: true, force: true });
const { status, stdout, stderr } = spawnSync(
  'pnpm',
  ['--recursive', ...chosen, 'pack', '--pack-destination', folder],
  { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' },
);
if (status === 0) console.log(`In a project of yours: npm install ${folder}/*.tgz`);
else console.error(stdout, stderr);
process.exitCode = status ?? 1;
