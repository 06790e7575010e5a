import { kernelSource } from '../../op/kernel-arguments/kernel-source.ts';
import { storageType } from '../../op/kernel-arguments/c-types.ts';
import type { HostArray } from '../../op/cpu-lowering.ts';
import type { CudaContext } from '../../op/cuda-lowering.ts';
import { type ComputeOp, defineOp } from '../../op/op.ts';
import type { GeneratorState } from '../../tensor/random/generator.ts';
import { eachBlock, halvesOf } from '../../tensor/random/philox.ts';
import type { DType, TypedArray } from '../../base/dtype.ts';
import { toBits16 } from '../../base/float16.ts';
import { type KernelParameters, type KernelVariants, kernelVariants } from '@roofline/cuda';

interface RandomDefinition<A> {
  readonly name: string;
  readonly kernel: string;
  /** The kernel's own parameters, after (y, count, seedLow, seedHigh, offset), and their values. */
  readonly parameters: KernelParameters;
  readonly arguments: (attributes: A) => Readonly<Record<string, number>>;
  /** The value that each random word stands for; the kernel does the same operations in the same order. */
  readonly transform: (words: Uint32Array, values: Float64Array, attributes: A) => void;
}

const threads = 256;

/** An op that overwrites its input with random numbers; the same numbers on every device. */
export function randomOp<A extends GeneratorState>(definition: RandomDefinition<A>): ComputeOp<A> {
  const kernel: KernelVariants = kernelVariants(
    kernelSource(`random/${definition.kernel}.cu`),
    definition.kernel,
    {
      ...{ y: 'pointer', count: 'int64', seedLow: 'uint32', seedHigh: 'uint32', offset: 'int64' },
      ...definition.parameters,
    },
  );
  return defineOp<A>({
    name: definition.name,
    autocast: 'none',
    infer: ([x]) => [x!],
    mutates: [0],
    cuda: {
      kind: 'custom',
      launch(context, _, [y], attributes) {
        const { low, high } = halvesOf(attributes.seed);
        context.kernel(kernel({ ELEMENT: storageType(y!.dtype) })).launch(
          [gridFor(context, y!.size), 1, 1],
          threads,
          0,
          kernel.byName({
            y: y!.address,
            count: y!.size,
            seedLow: low,
            seedHigh: high,
            offset: attributes.offset,
            ...definition.arguments(attributes),
          }),
        );
      },
    },
    cpu: {
      kind: 'host',
      run: (_, [y], attributes) => fillOnHost(y!, attributes, definition.transform),
    },
  });
}

function gridFor({ properties }: CudaContext, count: number): number {
  return Math.min(Math.ceil(count / (4 * threads)), 16 * properties.multiprocessors);
}

function fillOnHost<A extends GeneratorState>(
  { data, dtype }: HostArray,
  attributes: A,
  transform: RandomDefinition<A>['transform'],
): void {
  let values: Float64Array | null = null;
  eachBlock(data.length, attributes, (words, start) => {
    values ??= new Float64Array(words.length);
    transform(words, values, attributes);
    store(values.subarray(0, data.length - start), data, dtype, start);
  });
}

function store(values: Float64Array, data: TypedArray, dtype: DType, start: number): void {
  if (data instanceof BigInt64Array) values.forEach((value, i) => (data[start + i] = BigInt(value)));
  else if (data instanceof Uint16Array)
    values.forEach((value, i) => (data[start + i] = toBits16(dtype, value)));
  else data.set(values, start);
}
