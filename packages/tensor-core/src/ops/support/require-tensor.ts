import { DTypeError } from '../../errors.ts';
import { describeValue } from '../../tensor/dtype.ts';
import { Tensor } from '../../tensor/tensor.ts';

/** Throws a DTypeError, which names `op`, unless `x` is a tensor: TypeScript tells most callers, JavaScript's none. */
export function requireTensor(op: string, x: Tensor): void {
  if (!(x instanceof Tensor)) throw notATensor(op, x);
}

export function notATensor(op: string, x: unknown): DTypeError {
  return new DTypeError(`${op}: takes tensors, not ${describeValue(x)}; make one with tensor() or full().`);
}
