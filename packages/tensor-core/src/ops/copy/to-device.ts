import { refuseMore, requireTensor } from '../../op/require-tensor.ts';
import { TapeNode } from '../../tensor/tape/tape.ts';
import { isGradEnabled } from '../../tensor/tape/grad-mode.ts';
import { alias } from '../../op/alias.ts';
import { observers, tellDeviceCopy } from '../../op/observers.ts';
import { type DeviceSpec, deviceOf } from '../../backends/device-registry.ts';
import type { Device } from '../../tensor/device.ts';
import { bytesOfArray } from '../../tensor/host-values.ts';
import { scope } from '../../tensor/lifetime/scope.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { readElements } from '../transfer.ts';

interface ToDeviceAttributes {
  readonly device: Device;
}

const toDeviceOp = {
  name: 'toDevice',
  gradient: ({
    gradients,
    attributes,
  }: {
    gradients: readonly (Tensor | null)[];
    attributes: ToDeviceAttributes;
  }) => [toDevice(gradients[0]!, attributes.device)],
};

/** The same values on another device, through host memory; another handle to the same storage if it is there already. Differentiable. */
export function toDevice(x: Tensor, destination: DeviceSpec | Device, ...rest: []): Tensor {
  requireTensor('toDevice', x);
  refuseMore('toDevice', rest);
  const target = deviceOf('toDevice', destination);
  if (x.device === target) return alias(x);
  return scope(() => {
    const result = Tensor.allocate(target, x.dtype, x.shape);
    if (observers.length > 0) tellDeviceCopy(x, result);
    if (x.size > 0) target.write(result.storage.buffer, 0, bytesOfArray(readElements(x)));
    if (isGradEnabled() && x.requiresGrad) {
      TapeNode.record(toDeviceOp, { device: x.device }, [x], [x], [result]);
    }
    return result;
  });
}
