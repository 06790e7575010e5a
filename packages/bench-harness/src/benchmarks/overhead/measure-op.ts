import { device as openDevice, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../../runner/cell-task.ts';
import { eagerOps } from './eager-ops.ts';
import { measureFirstOp } from './first-op.ts';
import type { OpCell, OverheadSettings } from './parameters.ts';
import type { OpResult } from './result.ts';

/** Times one op: in the steady state here, and for CUDA the first one in fresh processes. */
export async function measureOp(
  { op }: OpCell,
  { settings, deviceLabel, progress }: CellContext<OverheadSettings>,
): Promise<OpResult> {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const firstOp = device.type === 'cuda' ? await measureFirstOp(op, deviceLabel) : null;
  const run = eagerOps[op](device);
  repeat(run, settings.calls);
  const hostUs: number[] = [];
  for (let done = 1; done <= settings.repeats; done++) {
    hostUs.push(hostMicroseconds(device, run, settings.calls));
    progress(done, settings.repeats, 'repeats');
  }
  return { hostUs, firstOp };
}

/** Of one call: the clock stops when all are queued, before the device has run them. */
function hostMicroseconds(device: Device, run: () => void, calls: number): number {
  device.synchronize();
  const start = performance.now();
  repeat(run, calls);
  const elapsedMs = performance.now() - start;
  device.synchronize();
  return (elapsedMs * 1000) / calls;
}

function repeat(run: () => void, calls: number): void {
  for (let call = 0; call < calls; call++) run();
}
