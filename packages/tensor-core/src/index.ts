// For projects whose `lib` has no Symbol.dispose, which tensors do have.
/// <reference lib="esnext.disposable" preserve="true" />
import './tensor-methods.ts';

export { Tensor } from './tensor/tensor.ts';
export { reportLeaks } from './tensor/lifetime/leak-watch.ts';
export { Storage } from './tensor/storage/storage.ts';
export { keep, scope } from './tensor/lifetime/scope.ts';
export {
  type DType,
  type TypedArray,
  byteSize,
  checkDType,
  dtypes,
  isFloatingPoint,
  promote,
} from './base/dtype.ts';
export { type Layout, type Shape, formatShape, sizeOf } from './base/shape.ts';
export type { Device } from './tensor/device.ts';
export {
  type AllocationKind,
  type DeviceBuffer,
  type DeviceEvent,
  type MemoryBlock,
  type MemoryObserver,
  type MemorySegment,
  type MemoryStatistics,
  type OutOfMemoryDetails,
  type Place,
  DeviceError,
  DisposedError,
  KernelCompileError,
  LibraryNotFoundError,
  OutOfMemoryError,
  RooflineError,
  checkCount,
  checkFlag,
  checkFunction,
  checkNumber,
  checkObject,
  checkOptions,
  checkText,
  describeValue,
} from '@roofline/cuda/host';
export { type DeviceSpec, checkDevice, device } from './backends/device-registry.ts';
export * from './base/errors.ts';

export {
  type NestedNumbers,
  type TensorOptions,
  arange,
  empty,
  fromBytes,
  fromTypedArray,
  full,
  ones,
  onesLike,
  tensor,
  zeros,
  zerosLike,
} from './ops/creation/from-values.ts';
export { fromBits16, toBits16 } from './base/float16.ts';

export * from './op/op.ts';
export type { Saves } from './tensor/tape/save-plan.ts';
export type * from './base/memory-view.ts';
export type { CudaKernel, CudaProperties, Diagnosis, KernelSpec } from '@roofline/cuda';
export type * from './op/cuda-lowering.ts';
export type * from './op/kernel-rewrites.ts';
export type {
  OnnxAttribute,
  OnnxAttributes,
  OnnxGraph,
  OnnxNodeOptions,
  OnnxTensor,
  OnnxValue,
} from './onnx/graph.ts';
export type * from './op/cpu-lowering.ts';
export { requireTensor, requireTensors } from './op/require-tensor.ts';
export { type Destinations, apply, applyOne, applyView } from './op/apply.ts';
export { type CompileCache, type CompileOptions, type CompiledFunction, compile } from './compile/compile.ts';
export type { DynamicAxes } from './compile/dynamic-axes.ts';
export { type ExportOnnxOptions, exportOnnx } from './compile/export-onnx.ts';
export type { CompileExplanation } from './compile/specialization.ts';
export type { ExplainedCall, ExplainedOperand } from './compile/executable/explained-call.ts';
export type { ExecutableFacts } from './compile/executable/executable.ts';
export type { Replay, ReplayedCall, ReplayedOp } from './op/replay.ts';
export { dependOn } from './tensor/tracing.ts';
export { applyLive } from './op/per-run-attributes.ts';
export { alias } from './op/alias.ts';
export { type Observer, observeOps } from './op/observers.ts';
export { costOf } from './op/cost.ts';
export { type RecordMemoryOptions, recordMemory } from './observe/memory/record-memory.ts';
export type { Allocation, MemoryEvent, MemoryRecord } from './observe/memory/record.ts';
export type { StackFrame } from './observe/memory/call-stack.ts';
export { type MemoryPeak, peakMemory, reservedOverTime } from './observe/memory/peaks.ts';
export { type SavedForBackward, savedForBackward } from './observe/memory/saved-for-backward.ts';
export { memorySnapshot } from './observe/memory/snapshot.ts';
export { type OpenRange, type RangeListener, currentRange, onRange, range } from './tensor/ranges/range.ts';
export { type Profile, profile, rangePath } from './observe/profiler/profile.ts';
export type { ProfiledKernel, ProfiledOp, ProfiledRange } from './observe/profiler/profiled.ts';

export {
  type BackwardOptions,
  backward,
  isBackwardRunning,
  onBackwardFinished,
} from './autograd/backward.ts';
export { checkpoint, selectiveCheckpoint } from './autograd/checkpoint.ts';
export type { RepeatableCall } from './op/kept-results.ts';
export { type FunctionContext, type FunctionDefinition, defineFunction } from './autograd/define-function.ts';
export { type LinearCrossEntropyOptions, linearCrossEntropy } from './autograd/linear-cross-entropy.ts';
export { type CheckGradientsOptions, checkGradients } from './autograd/check-gradients.ts';
export { type AutocastDType, autocast, autocastDType, withoutAutocast } from './op/autocast/autocast.ts';
export type { GradientHook, HookOptions } from './tensor/tensor.ts';
export { enableGrad, isGradEnabled, noGrad } from './tensor/tape/grad-mode.ts';

export { add, div, maximum, minimum, mul, neg, sub } from './ops/elementwise/arithmetic.ts';
export { equal, greater, greaterEqual, less, lessEqual } from './ops/elementwise/comparisons.ts';
export { logicalNot, notEqual } from './ops/elementwise/logical-not.ts';
export { type GeluOptions, gelu } from './ops/elementwise/gelu.ts';
export { cos, exp, log, relu, rsqrt, sigmoid, silu, sin, sqrt, tanh } from './ops/elementwise/math.ts';
export { pow } from './ops/elementwise/pow.ts';
export type { Operand } from './ops/support/pointwise.ts';
export { cast } from './ops/copy/cast.ts';
export { contiguous, copy } from './ops/copy/contiguous.ts';
export { addInPlace, copyInPlace, fillInPlace } from './ops/copy/in-place.ts';
export { type ReductionOptions, max, mean, min, sum } from './ops/reduce/reductions.ts';
export {
  expand,
  permute,
  reshape,
  select,
  slice,
  squeeze,
  transpose,
  unsqueeze,
  view,
} from './ops/shape/views.ts';
export { concat, stack } from './ops/shape/concat.ts';
export { where } from './ops/elementwise/where.ts';
export { type MatmulOptions, linear, matmul } from './ops/matrix/matmul.ts';
export { toDevice } from './ops/copy/to-device.ts';
export { logSoftmax } from './ops/nn/log-softmax.ts';
export type { SoftmaxOptions } from './ops/nn/softmax-op.ts';
export { softmax } from './ops/nn/softmax.ts';
export { layerNorm } from './ops/nn/layer-norm.ts';
export { type RmsNormOptions, rmsNorm } from './ops/nn/rms-norm.ts';
export { type CrossEntropyOptions, crossEntropy } from './ops/nn/cross-entropy.ts';
export { embedding } from './ops/index/embedding.ts';
export { gather } from './ops/index/gather.ts';
export { indexCopyInPlace } from './ops/index/index-copy.ts';
export { rope } from './ops/nn/rope.ts';
export { swiglu } from './ops/nn/swiglu.ts';
export { causalMask, tril } from './ops/shape/tril.ts';
export {
  type RandomOptions,
  type TruncatedNormalOptions,
  randint,
  randn,
  truncatedNormal,
  uniform,
} from './ops/random/random.ts';
export { abs, sign } from './ops/elementwise/abs.ts';
export { type ClampOptions, clamp } from './ops/elementwise/clamp.ts';
export { type ArgExtremumOptions, argmax, argmin } from './ops/reduce/arg-extremum.ts';
export { all, any } from './ops/reduce/any-all.ts';
export { cumsum } from './ops/reduce/cumsum.ts';
// `var` cannot be the name of a variable: import { variance }, or use it as tensorCore.var.
export { type VarianceOptions, std, variance, variance as var } from './ops/reduce/variance.ts';
export { type TopkOptions, topk } from './ops/index/topk.ts';
export { flatten } from './ops/shape/flatten.ts';
export { chunk, split } from './ops/shape/split.ts';
export { eye } from './ops/creation/eye.ts';
export { linspace } from './ops/creation/linspace.ts';
export { type DropoutOptions, dropout } from './ops/random/dropout.ts';
export { einsum } from './ops/matrix/einsum.ts';
export {
  Generator,
  type GeneratorState,
  checkGenerator,
  defaultGenerator,
} from './tensor/random/generator.ts';

export {
  type Float32MatmulPrecision,
  getFloat32MatmulPrecision,
  setFloat32MatmulPrecision,
} from './op/float32-matmul-precision.ts';
export { setCpuThreads } from './onnx/threads.ts';
export { cudaAvailable, cudaDeviceCount } from './backends/cuda/open-device.ts';
export { diagnose } from './backends/diagnose.ts';
