import { add, matmul, mul, ones, softmax, type Device } from '@roofline/tensor-core';
import type { EagerOpName } from './parameters.ts';

/** Small, so that the device is never what one waits for. */
const SHAPE = [16, 16] as const;

/** Makes the inputs of an op on `device`; what is returned runs it once and frees its output. */
export const eagerOps: Readonly<Record<EagerOpName, (device: Device) => () => void>> = {
  add(device) {
    const [a, b] = [ones(SHAPE, { device }), ones(SHAPE, { device })];
    return () => add(a, b).dispose();
  },
  'mul-with-tape'(device) {
    const [a, b] = [ones(SHAPE, { device }).requiresGrad_(), ones(SHAPE, { device })];
    return () => mul(a, b).dispose();
  },
  softmax(device) {
    const x = ones(SHAPE, { device });
    return () => softmax(x, -1).dispose();
  },
  matmul(device) {
    const [a, b] = [ones(SHAPE, { device }), ones(SHAPE, { device })];
    return () => matmul(a, b).dispose();
  },
};
