import { describe } from 'vitest';
import { describeElementwise, describeReductions } from '../op-cases/generic.ts';
import { openEmulatedDevice } from './emulator/emulated-device.ts';
const d = openEmulatedDevice();
describe('element-wise', () => describeElementwise(() => d, { float64: true }));
describe('reductions', () => describeReductions(() => d));
