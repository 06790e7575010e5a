import { checkFlag, checkNumber, checkOptions } from '@roofline/cuda/host';
import { requireTensor } from '../../op/require-tensor.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { applyLive } from '../../op/per-run-attributes.ts';
import { bytesOf } from '../../op/cost.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import { byteSize } from '../../base/dtype.ts';
import { type Draw, drawFrom } from '../../tensor/random/draw.ts';
import {
  type Generator,
  type GeneratorState,
  checkGenerator,
  defaultGenerator,
} from '../../tensor/random/generator.ts';
import { eachBlock, halvesOf } from '../../tensor/random/philox.ts';
import { sizeOf } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { view } from '../shape/views.ts';
import { numbersOf, storeNumbers } from '../support/host-numbers.ts';
import { kernelVariants } from '@roofline/cuda';
import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { requireFloatingPoint } from '../support/require-dtype.ts';

interface DropoutAttributes extends GeneratorState {
  /** The probability of an element to become zero. */
  readonly p: number;
  readonly draw: Draw;
}

const kernel = kernelVariants(kernelSource('random/dropout.cu'), 'dropout', {
  ...{ x: 'pointer', y: 'pointer', count: 'int64', seedLow: 'uint32', seedHigh: 'uint32' },
  ...{ offset: 'int64', threshold: 'int64', scale: 'float64' },
});
const threads = 256;
const blocksPerMultiprocessor = 16;

/** Elements whose random word is below this become zero. */
function thresholdOf({ p }: DropoutAttributes): number {
  return Math.round(p * 2 ** 32);
}

function scaleOf({ p }: DropoutAttributes): number {
  return p === 1 ? 0 : 1 / (1 - p);
}

const dropoutOp: ComputeOp<DropoutAttributes> = defineOp<DropoutAttributes>({
  name: 'dropout',
  autocast: 'none',
  infer: ([x]) => {
    requireFloatingPoint('dropout', 'x', x!);
    return [{ shape: x!.shape, dtype: x!.dtype }];
  },
  // The same random words zero the same elements, so no mask is kept. A replay's are those of its own forward pass.
  gradient: ({ gradients, attributes }) =>
    applyLive(dropoutOp, [gradients[0]!], () => ({ ...attributes, ...attributes.draw.place })),
  variant: () => '',
  cost: (inputs, outputs) => ({
    flops: sizeOf(outputs[0]!.shape),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
  }),
  cuda: {
    kind: 'custom',
    launch: (context, [x], [y], attributes) => launch(context, x!, y!, attributes),
  },
  cpu: { kind: 'host', run: ([x], [y], attributes) => dropOnHost(x!, y!, attributes) },
});

function launch(context: CudaContext, x: MemoryView, y: MemoryView, attributes: DropoutAttributes): void {
  const { low, high } = halvesOf(attributes.seed);
  const defines = { ELEMENT: storageType(x.dtype), VECTOR_LENGTH: vectorLengthOf(x, y) };
  const most = blocksPerMultiprocessor * context.properties.multiprocessors;
  context.kernel(kernel(defines)).launch(
    [Math.min(Math.ceil(x.size / (4 * threads)), most), 1, 1],
    threads,
    0,
    kernel.byName({
      x: x.address,
      y: y.address,
      count: x.size,
      seedLow: low,
      seedHigh: high,
      offset: attributes.offset,
      threshold: thresholdOf(attributes),
      scale: scaleOf(attributes),
    }),
  );
}

/** A thread loads its four elements at once, or in two loads; one by one if they are not aligned. */
function vectorLengthOf(x: MemoryView, y: MemoryView): number {
  const length = Math.min(4, 16 / byteSize(x.dtype));
  const bytes = length * byteSize(x.dtype);
  return x.address % bytes === 0 && y.address % bytes === 0 ? length : 1;
}

function dropOnHost(x: HostArray, y: HostArray, attributes: DropoutAttributes): void {
  const values = numbersOf(x) as Float32Array | Float64Array;
  const threshold = thresholdOf(attributes);
  // Products of float32 numbers are rounded once, as on a GPU.
  const scale = values instanceof Float32Array ? Math.fround(scaleOf(attributes)) : scaleOf(attributes);
  let products: Float32Array | Float64Array | null = null;
  eachBlock(values.length, attributes, (words, start) => {
    products ??= new (values instanceof Float32Array ? Float32Array : Float64Array)(words.length);
    const count = Math.min(words.length, values.length - start);
    for (let i = 0; i < count; i++) products[i] = values[start + i]! * (words[i]! >= threshold ? scale : 0);
    const target = y.data.subarray(start, start + count);
    storeNumbers({ ...y, data: target }, products.subarray(0, count));
  });
}

/** Options of `dropout`. */
export interface DropoutOptions {
  /** The probability of each element to become zero. Default 0.5. */
  p?: number;
  /** If false, nothing is dropped. Default true. */
  training?: boolean;
  /** Where the random numbers come from. Default: `defaultGenerator`. */
  generator?: Generator;
}

/**
 * While `training`, zeroes each element with probability `p` and multiplies the others by 1 / (1 - p) (Srivastava et al.
 * 2014); the gradient is zeroed and scaled likewise. Equal generators drop the same elements on every device. A call takes
 * x.size random words of the generator, or none if nothing is random: not training, or p is 0. Throws a DTypeError, or a
 * RooflineError (code RANGE) for a `p` that is not a probability.
 */
export function dropout(x: Tensor, options: DropoutOptions = {}): Tensor {
  requireTensor('dropout', x);
  checkOptions('dropout', options, ['p', 'training', 'generator']);
  const { p = 0.5, training = true, generator = defaultGenerator } = options;
  checkNumber('dropout', 'p', p, 'a probability from 0 to 1', (value) => value >= 0 && value <= 1);
  checkFlag('dropout', 'training', training);
  checkGenerator('dropout', generator);
  requireFloatingPoint('dropout', 'x', x);
  if (!training || p === 0 || x.size === 0) return view(x, x.shape);
  const draw = drawFrom(generator, x.size);
  const goBack = generator.mark();
  try {
    return applyLive(dropoutOp, [x], () => ({ p, ...draw.take(), draw }))[0]!;
  } catch (error) {
    // After an error, such as out of memory, a second try gets the same numbers.
    goBack();
    throw error;
  }
}
