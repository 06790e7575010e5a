import { existsSync } from 'node:fs';
import { defineConfig } from 'tsup';

export default defineConfig({
  entry: [
    ...['index', 'native', 'nearest', 'testing', 'compile-worker', 'nccl-watchdog'],
    ...['cli', 'cell', 'lifeline', 'collective-rank', 'ddp-rank'],
  ]
    .map((name) => `src/${name}.ts`)
    .filter((path) => existsSync(path)),
  format: 'esm',
  platform: 'node',
  target: 'node22.12',
  sourcemap: true,
  splitting: true,
  clean: true,
});
