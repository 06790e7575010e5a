import { kernelVariants } from '@roofline/cuda';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import { openEmulatedDevice } from '../../src/testing.ts';
import { compareStep } from './random-steps/compare-step.ts';
import { drawStep } from './random-steps/draw-step.ts';

const halve = kernelVariants(new URL('halve.cu', import.meta.url), 'halve', {
  ...{ x: 'pointer', copy: 'pointer', size: 'int64' },
});

it.skipIf(hostCompilerVersion() === null)(
  'what fails because a kernel has broken its device is not what eager code refuses',
  () => {
    const program = drawStep(1996, { leftOut: new Set(), trainers: [] });
    const device = openEmulatedDevice();
    expect(compareStep(program, device, []).kind).toBe('same');
    const x = device.upload(new Float32Array(8));
    const values = halve.byName({ x: x.address + 2, copy: 0, size: 4 });
    device.kernel(halve({})).launch([1, 1, 1], 32, 0, values);
    expect(() => device.synchronize()).toThrow(t.DeviceError);
    expect(compareStep(program, device, [])).toMatchObject({ kind: 'breaks', ops: [] });
  },
);
