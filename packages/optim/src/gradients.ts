import { DTypeError, DeviceError, ShapeError, type Tensor, formatShape } from '@roofline/tensor-core';

/**
 * The parameters that have gradients. Throws before anything is written: a DisposedError for a parameter or a
 * gradient that has been disposed; a DTypeError, ShapeError or DeviceError for a gradient that the kernels, which
 * know addresses and one size alone, would read wrongly.
 */
export function withGradients(owner: string, parameters: readonly Tensor[]): Tensor[] {
  return parameters.filter((parameter) => {
    parameter.assertAlive(`${owner}: a parameter`);
    if (parameter.grad) checkGradient(owner, parameter, parameter.grad);
    return parameter.grad !== null;
  });
}

function checkGradient(owner: string, parameter: Tensor, gradient: Tensor): void {
  gradient.assertAlive(`${owner}: a gradient`);
  const { dtype, shape, device, isContiguous } = gradient;
  if (dtype !== 'float32' || !isContiguous) {
    throw new DTypeError(
      `${owner}: a gradient ${formatShape(shape)} is ${dtype}${isContiguous ? '' : ', not contiguous'}; ` +
        'it must be contiguous float32.',
    );
  }
  if (!sameShape(shape, parameter.shape)) {
    throw new ShapeError(
      `${owner}: a gradient is ${formatShape(shape)}, its parameter ${formatShape(parameter.shape)}; they must be ` +
        'of one shape.',
    );
  }
  if (device !== parameter.device) {
    throw new DeviceError(
      `${owner}: a gradient ${formatShape(shape)} is on ${device.label}, its parameter on ` +
        `${parameter.device.label}; move it with .to(device).`,
    );
  }
}

function sameShape(a: Tensor['shape'], b: Tensor['shape']): boolean {
  return a.length === b.length && a.every((length, i) => length === b[i]);
}
