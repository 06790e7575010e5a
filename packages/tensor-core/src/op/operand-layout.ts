import { type DType, byteSize } from '../base/dtype.ts';
import type { Layout } from '../base/shape.ts';

/** A layout, in a storage of so many elements. */
export interface OperandLayout extends Layout {
  readonly dtype: DType;
  readonly storageSize: number;
}

/** A tensor, of a program or by itself, and the bytes of its storage. */
interface Stored extends Omit<OperandLayout, 'storageSize'> {
  readonly storage: { readonly byteLength: number };
}

export function operandLayout({ shape, strides, offset, dtype, storage }: Stored): OperandLayout {
  return { shape, strides, offset, dtype, storageSize: Math.floor(storage.byteLength / byteSize(dtype)) };
}
