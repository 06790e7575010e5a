import {
  DTypeError,
  type Device,
  DeviceError,
  RooflineError,
  ShapeError,
  type Tensor,
  describeValue,
  formatShape,
  requireTensors,
} from '@roofline/tensor-core';

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

/**
 * The gradients of parameters, each counted once. Throws what `withGradients` throws, and a RooflineError where there
 * are none (code GRADIENT).
 */
export function gradientsOf(owner: string, parameters: Iterable<Tensor>): Tensor[] {
  const gradients = withGradients(owner, listOf(owner, parameters)).map(({ grad }) => grad!);
  if (gradients.length > 0) return gradients;
  throw new RooflineError('GRADIENT', `${owner}: no parameter has a gradient; run backward first.`);
}

/** Gradients of one of several ranks, which may have none. */
interface GradientsOfRank {
  readonly gradients: Tensor[];
  /** Those that this rank counts; see `GradientRanks.counts`. */
  readonly counted: Tensor[];
  /** That the parameters are on. */
  readonly device: Device;
}

/** The same of one of several ranks. */
export function gradientsOfRank(
  owner: string,
  parameters: Iterable<Tensor>,
  counts: (parameter: Tensor) => boolean = () => true,
): GradientsOfRank {
  const list = listOf(owner, parameters);
  if (list.length === 0)
    throw new RooflineError('PARAMETERS', `${owner}: there are no parameters; pass sharded.parameters().`);
  const trained = withGradients(owner, list);
  const gradients = trained.map(({ grad }) => grad!);
  const counted = gradients.filter((_, i) => counts(trained[i]!));
  return { gradients, counted, device: list[0]!.device };
}

/** Each parameter once. */
function listOf(owner: string, parameters: Iterable<Tensor>): Tensor[] {
  if (typeof parameters !== 'object' || parameters === null || !(Symbol.iterator in parameters)) {
    throw new RooflineError(
      'PARAMETERS',
      `${owner}: takes a list of tensors, not ${describeValue(parameters)}; pass model.parameters().`,
    );
  }
  const list = [...new Set(parameters)];
  requireTensors(owner, list);
  return list;
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
