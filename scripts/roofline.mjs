// `npm run -s roofline -- ARGS`: the command of this checkout. Prints nothing of its own.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const program = new URL('../packages/bench-harness/dist/cli.js', import.meta.url);
if (!existsSync(fileURLToPath(program))) {
  console.error('Roofline is not built yet: run `npm run demo` or `npm test` once.');
  process.exit(2);
}
await import(program);
