import { wrongArgument } from '@roofline/cuda/host';
import { tracing } from '../tensor/tracing.ts';

/** `highest`: full float32. `high`: TF32 tensor cores, which round the operands to 10 bits of mantissa. */
export type Float32MatmulPrecision = 'highest' | 'high';

let precision: Float32MatmulPrecision = 'highest';

/**
 * How CUDA devices multiply float32 matrices from now on; the default is `highest`, as in PyTorch. Throws a CompileError
 * inside a compiled function, which has one precision for a whole call.
 */
export function setFloat32MatmulPrecision(next: Float32MatmulPrecision): void {
  if (next !== 'highest' && next !== 'high') {
    throw wrongArgument('setFloat32MatmulPrecision', 'the precision', "'highest' or 'high'", next);
  }
  tracing.active?.refuse(
    'the precision of float32 products is set, which replays would not',
    'Set it outside',
  );
  precision = next;
}

/** The precision of float32 matrix products: see `setFloat32MatmulPrecision`. */
export function getFloat32MatmulPrecision(): Float32MatmulPrecision {
  return precision;
}
