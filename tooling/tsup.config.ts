import { existsSync } from 'node:fs';
import { defineConfig } from 'tsup';

export default defineConfig({
  entry: ['src/index.ts', 'src/cli.ts', 'src/cell.ts'].filter((path) => existsSync(path)),
  format: 'esm',
  platform: 'node',
  target: 'node22',
  sourcemap: true,
  splitting: true,
  clean: true,
});
