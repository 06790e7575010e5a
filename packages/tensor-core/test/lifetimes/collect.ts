import { collect } from '../../../../tooling/collect-garbage.ts';
import * as t from '../../src/index.ts';

export { collect };

/** Overwrites memory that is free now, so that anything still reading it reads NaN. */
export function poisonFreeMemory(device: t.Device): void {
  const poison = [4, 8, 16, 64, 256, 1024].flatMap((size) =>
    Array.from({ length: 6 }, () => t.full([size], NaN, { device })),
  );
  for (const tensor of poison) tensor.dispose();
}

export function liveStorages(device: t.Device): number {
  return device.memoryStatistics().liveStorages;
}

/** Collects, and overwrites what that has freed. */
export async function collectAndPoison(device: t.Device): Promise<void> {
  await collect();
  poisonFreeMemory(device);
}
