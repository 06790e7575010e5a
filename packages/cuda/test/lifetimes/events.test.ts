import { expect, it } from 'vitest';
import type { CudaEvent } from '../../src/driver/event.ts';
import { openEmulatedGpu } from '../../src/testing/emulated-gpu.ts';
import { collect } from '../../../../tooling/collect-garbage.ts';

it('the handle of an event that was disposed of, and collected after it, is given to one event alone', async () => {
  const device = openEmulatedGpu();
  const record = () => device.recordEvent() as CudaEvent;
  (() => {
    for (let i = 0; i < 8; i++) record().dispose();
    const events = Array.from({ length: 8 }, record);
    for (const event of events) event.dispose();
  })();
  await collect();
  const live = Array.from({ length: 32 }, record);
  expect(new Set(live.map(({ handle }) => handle)).size).toBe(32);
});
