import type { DType } from '../base/dtype.ts';

/** TensorProto.DataType, which the C API's ONNXTensorElementDataType repeats. */
export const onnxTypes: Readonly<Record<DType, number>> = {
  float32: 1,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
  float64: 11,
  bfloat16: 16,
};
