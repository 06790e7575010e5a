import { describe } from 'vitest';
import { type Device, device } from '../../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../src/testing.ts';

let emulated: Device | null = null;

/** Describes the same on the CPU and on the emulated GPU, which needs g++ and is skipped, visibly, without it. */
export function describeOnDevices(body: (open: () => Device) => void): void {
  describe('on the CPU', () => body(() => device('cpu')));
  // Compiling a kernel takes the host's compiler a second, once per machine.
  describe.skipIf(!hostCompilerVersion())('on the emulated GPU', () =>
    body(() => (emulated ??= openEmulatedDevice())),
  );
}
