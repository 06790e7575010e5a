import { expect, it } from 'vitest';
import { prepareDevice, probeDevice } from '../../src/device/prepare-device.ts';
import { UsageError } from '../../src/errors.ts';

// No process starts within a millisecond: it stands for a driver that hangs.
it('gives a device up that does not open in time', async () => {
  await expect(prepareDevice('cuda:0', ['float32'], { timeoutMs: 1 })).rejects.toThrow(UsageError);
  await expect(probeDevice('cpu', { timeoutMs: 1 })).rejects.toThrow(
    /^cpu did not open within 0\.001 s\..*--device/,
  );
});
