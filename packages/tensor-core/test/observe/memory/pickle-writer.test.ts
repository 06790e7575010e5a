import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Picklable, pickle } from '../../../src/observe/memory/pickle-writer.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;

/** What Python reads, as JSON. */
function readByPython(values: readonly Picklable[]): unknown[] {
  const script = 'import sys, json, pickle\nprint(json.dumps(pickle.load(sys.stdin.buffer)))';
  const { stdout, stderr, status } = spawnSync('python3', ['-c', script], { input: pickle(values) });
  expect(stderr.toString()).toBe('');
  expect(status).toBe(0);
  return JSON.parse(stdout.toString()) as unknown[];
}

describe('pickle', () => {
  it('writes protocol 2', () => {
    expect([...pickle(null)]).toEqual([0x80, 2, 'N'.charCodeAt(0), '.'.charCodeAt(0)]);
  });

  it.skipIf(!hasPython)('is read by Python', () => {
    const values = fc.sample(fc.jsonValue({ maxDepth: 4 }), { numRuns: 200, seed: 1 }) as Picklable[];
    const integers = [0, 1, 255, 256, 65535, 65536, 2 ** 31 - 1, 2 ** 31, -1, -(2 ** 31), -(2 ** 31) - 1];
    const all = [
      ...values,
      ...integers,
      2 ** 47 + 1,
      -(2 ** 53) + 1,
      0.1,
      -1e300,
      'é\u{1f600}',
      true,
      null,
      [],
      {},
    ];
    expect(readByPython(all)).toEqual(JSON.parse(JSON.stringify(all)));
  });

  it.skipIf(!hasPython)('writes what occurs again once, above 255 things too', () => {
    const shared = { frames: ['a frame with a long name'] };
    const names = Array.from({ length: 1000 }, (_, i) => `name ${i}`);
    const value = [...names, ...names, 'last', shared, shared, shared];
    expect(readByPython(value)).toEqual(value);
    expect(pickle(value).length).toBeLessThan(pickle(names).length * 1.5 + 100);
  });
});
