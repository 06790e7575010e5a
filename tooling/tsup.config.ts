import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { defineConfig } from 'tsup';

/** What packages export, and programs that they start; each lies atop `dist` once it is built. */
const entries = [
  ...['src/index.ts', 'src/kernel-api.ts', 'src/testing.ts', 'src/host.ts', 'src/parts.ts'],
  ...['src/nvrtc/compile-worker.ts', 'src/cupti/cupti-thread.ts'],
  ...['src/nccl-watchdog.ts', 'src/store-thread.ts', 'src/lifeline.ts', 'src/lifeline-thread.ts'],
  ...['src/launch/spawn-with-lifeline.ts', 'src/cli.ts', 'src/cell.ts'],
  ...['src/collective-rank.ts', 'src/ddp-rank.ts', 'src/train-rank.ts', 'src/encode-thread.ts'],
];

export default defineConfig({
  entry: Object.fromEntries(
    entries.filter((path) => existsSync(path)).map((path) => [basename(path, '.ts'), path]),
  ),
  format: 'esm',
  platform: 'node',
  target: 'node22.12',
  sourcemap: true,
  splitting: true,
  clean: true,
});
