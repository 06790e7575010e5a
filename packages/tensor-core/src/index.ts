import './tensor-methods.ts';

export { Tensor, reportLeaks } from './tensor.ts';
export { Storage } from './storage.ts';
export { keep, scope } from './scope.ts';
export { type DType, type TypedArray, byteSize, dtypes, isFloatingPoint, promote } from './dtype.ts';
export { type Layout, type Shape, formatShape, sizeOf } from './shape.ts';
export type { Device, DeviceBuffer, DeviceEvent, MemoryStatistics } from './device.ts';
export { type DeviceSpec, device } from './device-registry.ts';
export * from './errors.ts';

export {
  type NestedNumbers,
  type TensorOptions,
  arange,
  empty,
  fromTypedArray,
  full,
  ones,
  onesLike,
  tensor,
  zeros,
  zerosLike,
} from './creation.ts';
export { fromBits16, toBits16 } from './float16.ts';

export * from './op.ts';
export { type OpObserver, apply, applyOne, applyView, observeOps } from './apply.ts';
export { costOf } from './cost.ts';
export { type RecordMemoryOptions, recordMemory } from './memory/record-memory.ts';
export type { Allocation, MemoryEvent, MemoryRecord } from './memory/record.ts';
export type { AllocationKind, MemoryBlock, MemoryObserver, MemorySegment } from './memory/observer.ts';
export type { StackFrame } from './memory/call-stack.ts';
export { type MemoryPeak, peakMemory, reservedOverTime } from './memory/peaks.ts';
export { type SavedForBackward, savedForBackward } from './memory/saved-for-backward.ts';
export { memorySnapshot } from './memory/snapshot.ts';
export { type RangeListener, currentRange, onRange, range } from './range.ts';
export {
  type Profile,
  type ProfiledKernel,
  type ProfiledOp,
  type ProfiledRange,
  profile,
  rangePath,
} from './profiler/profile.ts';

export { type BackwardOptions, backward } from './autograd/backward.ts';
export { type CheckGradientsOptions, checkGradients } from './autograd/check-gradients.ts';
export { type AutocastDType, autocast, autocastDType, withoutAutocast } from './autocast/autocast.ts';
export { isGradEnabled, noGrad } from './autograd/grad-mode.ts';

export { add, div, maximum, minimum, mul, neg, sub } from './ops/arithmetic.ts';
export { equal, greater, greaterEqual, less, lessEqual } from './ops/comparisons.ts';
export { logicalNot, notEqual } from './ops/logical-not.ts';
export { cos, exp, gelu, log, pow, relu, rsqrt, sigmoid, silu, sin, sqrt, tanh } from './ops/math.ts';
export { type Operand } from './ops/pointwise.ts';
export { cast } from './ops/cast.ts';
export { contiguous, copy } from './ops/contiguous.ts';
export { addInPlace, copyInPlace, fillInPlace } from './ops/in-place.ts';
export { type ReductionOptions, max, mean, sum } from './ops/reductions.ts';
export { expand, permute, reshape, select, slice, squeeze, transpose, unsqueeze, view } from './ops/views.ts';
export { concat, stack } from './ops/concat.ts';
export { where } from './ops/where.ts';
export { type MatmulOptions, linear, matmul } from './ops/matmul.ts';
export { toDevice } from './ops/to-device.ts';
export { logSoftmax } from './ops/log-softmax.ts';
export { type SoftmaxOptions, softmax } from './ops/softmax.ts';
export { layerNorm } from './ops/layer-norm.ts';
export { type RmsNormOptions, rmsNorm } from './ops/rms-norm.ts';
export { type CrossEntropyOptions, crossEntropy } from './ops/cross-entropy.ts';
export { embedding } from './ops/embedding.ts';
export { gather } from './ops/gather.ts';
export { rope } from './ops/rope.ts';
export { swiglu } from './ops/swiglu.ts';
export { causalMask, tril } from './ops/tril.ts';
export {
  type RandomOptions,
  type TruncatedNormalOptions,
  randint,
  randn,
  truncatedNormal,
  uniform,
} from './ops/random.ts';
export { Generator } from './random/generator.ts';

export {
  type Float32MatmulPrecision,
  getFloat32MatmulPrecision,
  setFloat32MatmulPrecision,
} from './float32-matmul-precision.ts';
export { setCpuThreads } from './cpu/threads.ts';
export { cudaAvailable, cudaDeviceCount } from './cuda/device.ts';
export { type Diagnosis, diagnose } from './cuda/diagnose.ts';
export type {
  CudaContext,
  CudaKernel,
  CudaProperties,
  KernelSpec,
  MatmulRequest,
  StridedMemory,
} from './cuda/context.ts';
export type { OnnxAttributes, OnnxGraph, OnnxValue } from './cpu/onnx-graph.ts';
