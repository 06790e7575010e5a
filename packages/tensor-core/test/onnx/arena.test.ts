import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';

const index = JSON.stringify(new URL('../../src/index.ts', import.meta.url).href);
const mebibyte = 2 ** 20;

interface Seen {
  /** Bytes of the process: before a large op, after it, and after `emptyCache`. */
  readonly before: number;
  readonly after: number;
  readonly emptied: number;
  /** The op's result for four ones once the memory has been given back. */
  readonly four: number;
}

/** Runs `op` over 2^25 ones of a dtype, `a`, in a process of its own. */
function runLarge(dtype: string, op: string): Seen {
  const program = `
    const core = await import(${index});
    const cpu = core.device('cpu');
    const run = (size) => core.scope(() => {
      const a = core.full([size], 1, { dtype: '${dtype}' });
      return ${op}.toFlatArray()[0];
    });
    const bytes = () => process.memoryUsage().rss;
    run(2);
    cpu.emptyCache();
    const before = bytes();
    run(2 ** 25);
    const after = bytes();
    cpu.emptyCache();
    console.log(JSON.stringify({ before, after, emptied: bytes(), four: run(4) }));`;
  const words = [
    '--conditions=roofline-source',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '--eval',
    program,
  ];
  return JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' })) as Seen;
}

// ONNX Runtime has no kernels for these dtypes: it casts them, and keeps the memory for that.
it.runIf(process.platform === 'linux').each([
  ['float16', 'core.slice(core.add(a, a), 0, -1)', 2],
  ['bool', 'core.sum(a)', 4],
])('emptyCache gives back what ONNX Runtime kept for %s: %s', (dtype, op, expected) => {
  const { before, after, emptied, four } = runLarge(dtype, op);
  expect(after - before).toBeGreaterThan(200 * mebibyte);
  expect(emptied - before).toBeLessThan(40 * mebibyte);
  expect(four).toBe(expected);
});
