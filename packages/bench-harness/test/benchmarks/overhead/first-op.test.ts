import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import { measureFirstOp } from '../../../src/benchmarks/overhead/first-op.ts';

const leftovers = () => readdirSync(tmpdir()).filter((name) => name.startsWith('roofline-cold-'));

it('times the first op in two fresh processes, and leaves no cache behind', async () => {
  const before = leftovers();
  const { coldMs, warmMs } = (await measureFirstOp('add', 'cpu'))!;
  expect(Math.min(coldMs, warmMs)).toBeGreaterThan(10);
  expect(leftovers()).toEqual(before);
});

it('tells why a first op failed', async () => {
  await expect(measureFirstOp('add', 'no-such-device')).rejects.toThrow(
    /The first add in a process of its own failed/,
  );
});
