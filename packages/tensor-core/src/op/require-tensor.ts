import { DTypeError } from '../base/errors.ts';
import { RooflineError, describeValue, wrongArgument } from '@roofline/cuda/host';
import { Tensor } from '../tensor/tensor.ts';

/** Throws a DTypeError, which names `op`, unless `x` is a tensor, which TypeScript checks only for callers that use it. */
export function requireTensor(op: string, x: Tensor): void {
  if (!(x instanceof Tensor)) throw notATensor(op, x);
}

/** The same for each of a list. Throws a RooflineError (code ARGUMENT) unless it is a list. */
export function requireTensors(op: string, tensors: readonly Tensor[]): void {
  if (!Array.isArray(tensors)) throw wrongArgument(op, 'its tensors', 'a list', tensors);
  for (let i = 0; i < tensors.length; i++) {
    if (!(tensors[i] instanceof Tensor)) throw notATensor(op, tensors[i]);
  }
}

export function notATensor(op: string, x: unknown): DTypeError {
  return new DTypeError(`${op}: takes tensors, not ${describeValue(x)}; make one with tensor() or full().`);
}

/**
 * Throws a RooflineError (code OPTION) for arguments after the last parameter, such as options that a function does not take:
 * they would be ignored silently. What `Array.map` passes after an element is accepted.
 */
export function refuseMore(op: string, rest: readonly unknown[]): void {
  // So small that V8 inlines it into its callers, which then allocate no empty list.
  if (rest.length > 0) refuse(op, rest);
}

function refuse(op: string, rest: readonly unknown[]): void {
  if (rest.length === 2 && typeof rest[0] === 'number' && Array.isArray(rest[1])) return;
  const first = rest.find((argument) => argument !== undefined);
  if (first === undefined) return;
  const isOptions = first !== null && Object.getPrototypeOf(first) === Object.prototype;
  const names = isOptions ? Object.keys(first as object).join(', ') : '';
  throw new RooflineError(
    'OPTION',
    `${op}: takes no further argument, but got ${names === '' ? describeValue(first) : `{ ${names} }`}; leave it out.`,
  );
}
