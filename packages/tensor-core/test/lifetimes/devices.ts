import * as t from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';

/** The CPU, and the emulated GPU where there is a compiler for its kernels. */
export const devices: readonly (readonly [string, t.Device])[] = [
  ['the CPU', t.device('cpu')],
  ...(hostCompilerVersion() === null ? [] : [['the emulated GPU', openEmulatedDevice()] as const]),
];
