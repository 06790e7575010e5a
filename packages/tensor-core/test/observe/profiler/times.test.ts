import { expect, it } from 'vitest';
import * as t from '../../../src/index.ts';

it('a profile reports when each op began and how long it took, in microseconds of its own wall time', async () => {
  const startMs = performance.now();
  const { ops, kernels, wallUs } = await t.profile(() =>
    t.scope(() => {
      const x = t.ones([8]);
      t.exp(x);
      for (const until = performance.now() + 5; performance.now() < until;);
      t.tanh(x);
    }),
  );
  const elapsedUs = (performance.now() - startMs) * 1000;
  expect(wallUs).toBeGreaterThanOrEqual(5000);
  expect(wallUs).toBeLessThanOrEqual(elapsedUs);
  const exp = ops.find(({ name }) => name === 'exp')!;
  const tanh = ops.find(({ name }) => name === 'tanh')!;
  expect(tanh.hostStartUs - (exp.hostStartUs + exp.hostDurationUs)).toBeGreaterThanOrEqual(5000);
  for (const { hostStartUs, hostDurationUs, allocatedBytes } of ops) {
    expect(hostStartUs).toBeGreaterThanOrEqual(0);
    expect(hostStartUs + hostDurationUs).toBeLessThanOrEqual(wallUs);
    expect(allocatedBytes).toBeGreaterThan(0);
  }
  // On the CPU an op's kernels divide the time that its call took.
  for (const [index, { hostStartUs, hostDurationUs }] of ops.entries()) {
    const own = kernels.filter(({ op }) => op === index);
    expect(own[0]!.startUs).toBeCloseTo(hostStartUs, 3);
    expect(own.reduce((sum, { durationUs }) => sum + durationUs, 0)).toBeCloseTo(hostDurationUs, 3);
  }
});
