import { type Place, RooflineError, formatPlace, userPlace } from '@roofline/cuda/host';

/** Shapes that do not fit an op: wrong rank, not broadcastable, an index out of range. */
export class ShapeError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('SHAPE', message, options);
  }
}

/** A dtype that an op or a device does not take. */
export class DTypeError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('DTYPE', message, options);
  }
}

/** The graph of a backward pass is missing, already freed, or was written to since. */
export class AutogradError extends RooflineError {
  constructor(message: string, options?: ErrorOptions) {
    super('AUTOGRAD', message, options);
  }
}

/** Where a CompileError arose. */
export interface CompileErrorOptions extends ErrorOptions {
  /** Where the user called the op in question. Default: where this error is made, in the user's code. */
  readonly place?: Place | null;
}

/**
 * What `compile` cannot put into a program: what it read, wrote or kept that a replay could not. The message ends with the
 * line of the user's code.
 */
export class CompileError extends RooflineError {
  constructor(message: string, options: CompileErrorOptions = {}) {
    const at = options.place ?? userPlace();
    super('COMPILE', at ? `${message} At ${formatPlace(at)}.` : message, options);
  }
}
