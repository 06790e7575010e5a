import { describe, expect, it } from 'vitest';
import { type ComputeOp, defineOp } from '../../../../src/op/op.ts';
import type { MemoryView } from '../../../../src/base/memory-view.ts';
import { PointwiseRunner } from '../../../../src/backends/cuda/generated/pointwise.ts';
import type { Launcher } from '@roofline/cuda/parts';
import { HostMemory } from '@roofline/cuda/host';
import { type DType, byteSize } from '../../../../src/base/dtype.ts';
import {
  type Shape,
  broadcastStrides,
  contiguousStrides,
  isContiguous,
  sizeOf,
} from '../../../../src/base/shape.ts';

interface Launch {
  readonly source: string;
  readonly blocks: number;
  /** The arguments as the kernel would read them. */
  readonly bytes: Uint8Array;
}

/** A runner whose kernels are their sources, and which records what it would launch. */
function fakeRunner() {
  const sources: string[] = [];
  const launches: Launch[] = [];
  const memory = new HostMemory(8192);
  const launcher = {
    arguments: memory,
    launch: (kernel: number, blocks: number, _: number, byteLength: number) =>
      launches.push({ source: sources[kernel]!, blocks, bytes: memory.bytes.slice(0, byteLength) }),
  };
  const runner = new PointwiseRunner(
    launcher as unknown as Launcher,
    (_, source) => sources.push(source) - 1,
  );
  return { runner, sources, launches, memory };
}

interface Layout {
  readonly shape: Shape;
  readonly strides?: Shape;
  readonly address?: number;
}

const aligned = 2 ** 20;

function memoryView(
  dtype: DType,
  { shape, strides = contiguousStrides(shape), address = aligned }: Layout,
): MemoryView {
  const size = sizeOf(shape);
  const byteLength = size * byteSize(dtype);
  return {
    ...{ dtype, shape, strides, address, size, byteLength, offset: 0 },
    isContiguous: isContiguous(shape, strides),
    storage: { byteLength, buffer: { address, byteLength } },
  } as MemoryView;
}

const binaryOp = (
  name: string,
  operator: string,
  scalars: readonly number[] = [],
): ComputeOp<{ sign: string }> =>
  defineOp<{ sign: string }>({
    name,
    autocast: 'none',
    infer: ([a]) => [a!],
    scalars: () => scalars,
    variant: ({ sign }) => sign,
    cuda: {
      kind: 'pointwise',
      expressions: ({ sign }) => [`a ${operator} ${sign}b${scalars.map((_, i) => ` + s${i}`).join('')}`],
    },
    cpu: { kind: 'host', run: () => undefined },
  });

interface Call {
  readonly op: ComputeOp<{ sign: string }>;
  readonly sign: string;
  readonly inputs: readonly MemoryView[];
  readonly outputs: readonly MemoryView[];
}

function run({ runner, launches, memory }: ReturnType<typeof fakeRunner>, call: Call): Launch {
  memory.bytes.fill(0); // the padding between two aligned arguments is undefined
  runner.run(call.op, call.inputs, call.outputs, { sign: call.sign });
  return launches.at(-1)!;
}

// Calls that differ from one another in each part that a kernel depends on.
const layouts: readonly (readonly [Layout, Layout, Layout])[] = [
  [{ shape: [8] }, { shape: [8] }, { shape: [8] }],
  [{ shape: [9] }, { shape: [9] }, { shape: [9] }],
  [{ shape: [8] }, { shape: [1] }, { shape: [8] }],
  [{ shape: [] }, { shape: [8] }, { shape: [8] }],
  [{ shape: [8], address: aligned + 8 }, { shape: [8] }, { shape: [8] }],
  [{ shape: [8] }, { shape: [8], address: aligned + 8 }, { shape: [8] }],
  [{ shape: [8] }, { shape: [8] }, { shape: [8], address: aligned + 8 }],
  [{ shape: [3, 8] }, { shape: [8] }, { shape: [3, 8] }],
  [{ shape: [8] }, { shape: [3, 8] }, { shape: [3, 8] }],
  [{ shape: [3, 8] }, { shape: [3, 1] }, { shape: [3, 8] }],
  [{ shape: [3, 1] }, { shape: [3, 8] }, { shape: [3, 8] }],
  [{ shape: [3, 8], address: aligned + 8 }, { shape: [3, 1] }, { shape: [3, 8] }],
  [{ shape: [3, 8] }, { shape: [8] }, { shape: [3, 8], address: aligned + 8 }],
  [{ shape: [3, 8] }, { shape: [8], address: aligned + 8 }, { shape: [3, 8] }],
  [{ shape: [3, 8], strides: [12, 1] }, { shape: [8] }, { shape: [3, 8] }],
  [{ shape: [3, 8], strides: [13, 1] }, { shape: [8] }, { shape: [3, 8] }],
  [{ shape: [3, 8], strides: [1, 3] }, { shape: [8] }, { shape: [3, 8] }],
  [{ shape: [2, 3, 8] }, { shape: [2, 1, 8] }, { shape: [2, 3, 8] }],
  [{ shape: [2, 3, 8], strides: [24, 1, 3] }, { shape: [2, 1, 1] }, { shape: [2, 3, 8] }],
  [{ shape: [3, 8], strides: [2 ** 30, 1] }, { shape: [8] }, { shape: [3, 8] }],
  [{ shape: [3, 8], strides: [2 ** 31, 1] }, { shape: [8] }, { shape: [3, 8] }],
];

const dtypes: readonly DType[] = ['float32', 'float16', 'bfloat16', 'float64', 'int64', 'bool'];
const dtypeTriples = dtypes.flatMap((dtype): DType[][] => [
  [dtype, 'float32', 'float32'],
  ['float32', dtype, 'float32'],
  ['float32', 'float32', dtype],
]);
const ops = [
  binaryOp('same', '+'),
  binaryOp('same', '*'),
  binaryOp('scaled', '+', [2.5]),
  binaryOp('twice', '+', [2, 7]),
];

const calls: readonly Call[] = ops.flatMap((op) =>
  ['', '-'].flatMap((sign) =>
    dtypeTriples.flatMap(([a, b, output]) =>
      layouts.map(([layoutA, layoutB, layoutOutput]) => ({
        op,
        sign,
        inputs: [memoryView(a!, layoutA), memoryView(b!, layoutB)],
        outputs: [memoryView(output!, layoutOutput)],
      })),
    ),
  ),
);

const describeCall = ({ op, sign, inputs, outputs }: Call) =>
  [
    op.name,
    sign,
    ...[...inputs, ...outputs].map((x) => `${x.dtype}[${x.shape}]/${x.strides}@${x.address}`),
  ].join(' ');

const vectorOf = (source: string) => Number(/kVector = (\d+);/.exec(source)![1]);

describe("pointwise kernels' keys", () => {
  it('find for every call what a runner without any kernel would generate and launch', () => {
    const shared = fakeRunner();
    const wrong: string[] = [];
    const sources = new Set<string>();
    for (const call of calls) {
      const fresh = run(fakeRunner(), call);
      sources.add(fresh.source);
      const found = run(shared, call);
      const same =
        found.source === fresh.source &&
        found.blocks === fresh.blocks &&
        Buffer.compare(found.bytes, fresh.bytes) === 0;
      if (!same) wrong.push(describeCall(call));
    }
    expect(wrong).toEqual([]);
    // The same again makes nothing new, and no more kernels are made than there are different ones.
    const made = shared.sources.length;
    for (const call of calls) run(shared, call);
    expect(shared.sources.length).toBe(made);
    expect(sources.size).toBeGreaterThan(calls.length / 8);
  });

  it('load and store vectors only where every address and stride allows it', () => {
    const wrong: string[] = [];
    let vectors = 0;
    for (const call of calls) {
      const { source } = run(fakeRunner(), call);
      const length = vectorOf(source);
      if (length > 1) vectors++;
      const shape = call.outputs[0]!.shape;
      for (const [i, x] of [...call.inputs, ...call.outputs].entries()) {
        if (i < 2 && new RegExp(`const Compute ${'ab'[i]} = `).test(source)) continue;
        const bytes = length * byteSize(x.dtype);
        const strides =
          x.size === sizeOf(shape) && x.isContiguous ? [1] : broadcastStrides(x.shape, x.strides, shape);
        const ok = bytes <= 16 && x.address % bytes === 0 && (length === 1 || strides.at(-1) === 1);
        const lines = strides.slice(0, -1).every((stride) => stride % length === 0);
        if (!ok || !lines) wrong.push(`${describeCall(call)}: operand ${i} by ${length}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(vectors).toBeGreaterThan(calls.length / 4);
  });

  it('take the widest vectors of dense, aligned operands', () => {
    const vector = (dtype: DType, address = aligned, length = 32) => {
      const operand = memoryView(dtype, { shape: [length], address });
      const call = {
        op: ops[0]!,
        sign: '',
        inputs: [operand, operand],
        outputs: [memoryView(dtype, { shape: [length] })],
      };
      return vectorOf(run(fakeRunner(), call).source);
    };
    expect(dtypes.map((dtype) => vector(dtype))).toEqual([4, 8, 8, 2, 2, 16]);
    expect([1, 2, 4, 8].map((offset) => vector('bool', aligned + offset))).toEqual([1, 1, 1, 1]);
    expect(vector('float32', aligned, 31)).toBe(4);
  });

  it('launch a thread for every vector, and one for each element of the rest', () => {
    const blocks = (size: number) => {
      const x = memoryView('float32', { shape: [size] });
      return run(fakeRunner(), { op: ops[0]!, sign: '', inputs: [x, x], outputs: [x] }).blocks;
    };
    expect([1, 1024, 1025, 4096, 4097].map(blocks)).toEqual([1, 1, 2, 4, 5]);
    const column = memoryView('float32', { shape: [3, 512], strides: [1, 3] });
    const output = memoryView('float32', { shape: [3, 512] });
    expect(
      run(fakeRunner(), { op: ops[0]!, sign: '', inputs: [column, column], outputs: [output] }).blocks,
    ).toBe(6);
  });

  it('copy by the bits of a dtype of the same size', () => {
    const { runner, launches } = fakeRunner();
    const shape = [3, 8];
    for (const dtype of ['float32', 'int32', 'float64', 'int64', 'float16', 'bfloat16', 'bool'] as const) {
      const from = { address: aligned, dtype, shape, strides: [1, 3] };
      runner.copy(from, { address: aligned, dtype, shape, strides: [8, 1] });
    }
    const types = launches.map(({ source }) => /const (\w+)\* in0/.exec(source)![1]);
    expect(types).toEqual(['int32', 'int32', 'int64', 'int64', 'float16', 'bfloat16', 'bool8']);
    runner.copy(
      { address: aligned, dtype: 'float32', shape: [0, 8], strides: [8, 1] },
      { address: aligned, dtype: 'float32', shape: [0, 8], strides: [8, 1] },
    );
    expect(launches.length).toBe(7);
  });
});
