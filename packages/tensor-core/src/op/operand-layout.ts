import { type DType, byteSize } from '../base/dtype.ts';
import type { Layout } from '../base/shape.ts';

/** A layout in a storage of `storageSize` elements. */
export interface OperandLayout extends Layout {
  readonly dtype: DType;
  readonly storageSize: number;
}

/** A tensor or an operand of a graph, with its storage's bytes. */
interface Stored extends Omit<OperandLayout, 'storageSize'> {
  readonly storage: { readonly byteLength: number };
}

export function operandLayout({ shape, strides, offset, dtype, storage }: Stored): OperandLayout {
  return { shape, strides, offset, dtype, storageSize: Math.floor(storage.byteLength / byteSize(dtype)) };
}
