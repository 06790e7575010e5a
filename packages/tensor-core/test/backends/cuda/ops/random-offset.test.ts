import { describe, expect, it } from 'vitest';
import { Generator, scope } from '../../../../src/index.ts';
import { randn, uniform } from '../../../../src/ops/random/random.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../../../src/testing/emulated-device.ts';

describe.skipIf(!hostCompilerVersion())('random numbers far into a stream, on the emulated GPU', () => {
  const device = openEmulatedDevice();

  // The counter is of 64 bits: its upper word counts, and carries from the lower one inside a call.
  it.each([2 ** 32 - 2, 2 ** 32, 2 ** 32 + 5, 7 * 2 ** 32 + 1, 2 ** 45 + 3])(
    'are those of the CPU from block %d on',
    (offset) => {
      for (const draw of [uniform, randn]) {
        const [gpu, cpu] = [device, 'cpu' as const].map((on) =>
          scope(() => [
            ...new Float32Array(
              draw([21], { device: on, generator: new Generator(3, offset) }).toTypedArray().buffer,
            ),
          ]),
        );
        expect(gpu).toEqual(cpu);
      }
    },
  );

  it('differ from those of the lower word alone', () => {
    const at = (offset: number) =>
      scope(() => [...uniform([8], { device, generator: new Generator(3, offset) }).toTypedArray()]);
    expect(at(2 ** 32)).not.toEqual(at(0));
  });
});
