// alone in a process: it sets up how much memory tensors outside scopes may take, and listens for warnings.
import { afterAll, describe, expect, it } from 'vitest';
import * as t from '../../../src/index.ts';
import { collectionShare } from '../../../src/tensor/lifetime/leak-watch.ts';
import { openEmulatedDevice } from '../../../src/testing/emulated-device.ts';

const mebibyte = 2 ** 20;
const warnings: Error[] = [];
const listen = (warning: Error) => void warnings.push(warning);
process.on('warning', listen);
afterAll(() => void process.off('warning', listen));

/** Makes and drops tensors of 4 MiB in one turn of the event loop, and gives the most that were held. */
function churn(device: t.Device, count: number): number {
  device.resetPeakMemory();
  const x = t.ones([mebibyte], { device });
  for (let i = 0; i < count; i++) t.add(x, 1);
  expect(t.slice(x, 0, 0, 2).toFlatArray()).toEqual([1, 1]);
  x.dispose();
  return device.memoryStatistics().peakAllocatedBytes;
}

describe('tensors outside scopes that nothing refers to', () => {
  it.each([
    ['the CPU', () => t.device('cpu')],
    ['a GPU', () => openEmulatedDevice()],
  ])('are freed when they take their share of %s, within one turn of the event loop', (_, open) => {
    const device = open();
    const { totalBytes } = device.memoryStatistics();
    collectionShare.ofTotal = (64 * mebibyte) / totalBytes;
    // 400 MiB in all, of which 64 may wait.
    expect(churn(device, 100)).toBeLessThan(100 * mebibyte);
  });

  it('are told of once, with the remedy', async () => {
    await new Promise(setImmediate);
    const told = warnings.filter(({ name }) => name === 'RooflineWarning');
    expect(told.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^6\d\.\d MiB of tensors on cpu .* scope\(\(\) => \.\.\.\).* dispose\(\)/),
    ]);
  });

  it('those in use stay, as do views of them and what the tape needs', () => {
    const device = t.device('cpu');
    const x = t.ones([mebibyte], { requiresGrad: true });
    const view = t.slice(t.add(x, 2), 0, 0, 3);
    const loss = t.sum(t.mul(t.mul(x, 3), t.mul(x, 2)));
    churn(device, 60);
    expect(view.toFlatArray()).toEqual([3, 3, 3]);
    loss.backward();
    expect(t.slice(x.grad!, 0, 0, 2).toFlatArray()).toEqual([12, 12]);
  });
});
