import { globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  type Definitions,
  type KernelVariant,
  compileByNvcc,
  foundNvcc,
  sharedKernels,
} from '../../../../../tooling/nvcc.ts';
import type { DType } from '../../../src/base/dtype.ts';
import {
  densePointwiseSource,
  stridedPointwiseSource,
  vectorLengthOf,
} from '../../../src/backends/cuda/generated/pointwise-kernel.ts';
import { accumulatorDType, reductionSource } from '../../../src/backends/cuda/generated/reduction-kernel.ts';
import {
  splitHalfDefines,
  splitHalfTiles,
} from '../../../src/backends/cuda/matmul/matmul-split-half-plan.ts';
import { kernelSource } from '../../../src/op/kernel-arguments/kernel-source.ts';

const kernels = kernelSource('');
const kernelsFolder = fileURLToPath(kernels);
/** Every file in it and in its rooms, by its path from there. */
const kernelFiles = readdirSync(kernelsFolder, { recursive: true, encoding: 'utf8' });

const storageTypes = ['float', 'float16', 'bfloat16'];
const row = (
  element: string,
  vector: number,
  threads: number,
  vectors: number,
  block = threads,
): Definitions => ({
  ELEMENT: element,
  VECTOR_LENGTH: vector,
  ROW_THREADS: threads,
  ROW_VECTORS: vectors,
  BLOCK_THREADS: block,
});
const rows = storageTypes.flatMap((element) => [
  row(element, element === 'float' ? 4 : 8, 256, 3),
  row(element, 1, 8, 1, 128),
  row(element, 1, 512, 0),
  { ...row(element, 4, 16, 1, 128), UNALIGNED_VECTORS: 1 },
]);
const with_ = (variants: readonly Definitions[], ...more: Definitions[]) =>
  variants.flatMap((variant) => more.map((defines) => ({ ...variant, ...defines })));
const elements = [...storageTypes, 'double'].map((element) => ({ ELEMENT: element }));
const norms = with_(
  rows,
  { RESULT: 'bfloat16', WEIGHT: 'float', CENTERED: 0 },
  { RESULT: 'float', WEIGHT: 'bfloat16', CENTERED: 1 },
);
const indices = ['int32', 'int64'].map((index) => ({ INDEX: index }));

/** The definitions that each file is compiled with here: every dtype, and each way that its code branches. */
const variantsOf: Readonly<Record<string, readonly Definitions[]>> = {
  'reduce/arg_extremum.cu': [
    { ELEMENT: 'float', LARGEST: 1, WIDTH: 256 },
    { ELEMENT: 'bfloat16', LARGEST: 0, WIDTH: 32 },
    { ELEMENT: 'int64', LARGEST: 0, WIDTH: 256 },
  ],
  'nn/cross_entropy.cu': with_(rows, { INDEX: 'int32' }, { INDEX: 'int64' }),
  'nn/cross_entropy_joint.cu': with_(
    rows,
    { RESULT: 'float', INDEX: 'int32', STAGED: 0 },
    { RESULT: 'bfloat16', INDEX: 'int64', STAGED: 1 },
  ),
  'reduce/cumulative_sum.cu': [
    { ELEMENT: 'float16', RESULT: 'float16', SUM: 'double' },
    { ELEMENT: 'double', RESULT: 'double', SUM: 'double' },
    { ELEMENT: 'bool8', RESULT: 'int64', SUM: 'int64' },
  ],
  'random/dropout.cu': [
    { ELEMENT: 'float', VECTOR_LENGTH: 4 },
    { ELEMENT: 'bfloat16', VECTOR_LENGTH: 1 },
    { ELEMENT: 'double', VECTOR_LENGTH: 2 },
  ],
  'index/gather.cu': with_(elements, ...indices),
  'index/index_copy.cu': with_(indices, { WORD: 'uint16', RANK: 1 }, { WORD: 'uint64', RANK: 3 }),
  'index/embedding.cu': with_(
    indices,
    { WORD: 'uint32', WORDS: 4 },
    { WORD: 'uint16', WORDS: 1 },
    { WORD: 'uint64', WORDS: 2 },
  ),
  'index/embedding_sort.cu': indices,
  'index/embedding_backward.cu': with_(
    elements,
    { VECTOR_LENGTH: 2, VECTORS: 2, ADDS: 0 },
    { VECTOR_LENGTH: 1, VECTORS: 1, ADDS: 1 },
  ),
  'shape/lower_triangle.cu': with_(
    with_(elements, { VECTOR_LENGTH: 2 }, { VECTOR_LENGTH: 1 }),
    { OFFSET: 'int32' },
    { OFFSET: 'int64' },
  ),
  'matmul/matmul_split_half.cu': splitHalfTiles.flatMap((tile) =>
    [0, 1, 2, 3].map((bits) => splitHalfDefines(tile, (bits & 1) === 1, bits > 1)),
  ),
  'nn/norm.cu': norms,
  'nn/norm_backward.cu': norms,
  'nn/norm_fold.cu': [
    { ACCUMULATOR: 'float', RESULT: 'bfloat16', MOST: 32 },
    { ACCUMULATOR: 'double', RESULT: 'double', MOST: 32 },
  ],
  'random/random_integer.cu': [...elements, { ELEMENT: 'int32' }, { ELEMENT: 'int64' }],
  'random/random_normal.cu': elements,
  'random/random_uniform.cu': elements,
  'nn/rope.cu': with_(elements, { VECTOR_LENGTH: 2, OFFSET: 'int32' }, { VECTOR_LENGTH: 2, OFFSET: 'int64' }),
  'nn/softmax.cu': [...rows, row('double', 2, 256, 2)],
  'matmul/split_half.cu': [{}],
  'index/top_k.cu': [
    { ELEMENT: 'float16', KEY: 'uint32', LARGEST: 1 },
    { ELEMENT: 'int32', KEY: 'uint32', LARGEST: 0 },
    { ELEMENT: 'double', KEY: 'uint64', LARGEST: 1 },
    { ELEMENT: 'int64', KEY: 'uint64', LARGEST: 0 },
  ],
};

/** A file whose instructions Hopper alone has. */
const hopperFile = 'matmul/matmul_split_half.cu';

/** What is compiled for: no code differs beyond 90, as a test below holds, so the same instructions are assembled for all. */
const architectures: readonly [virtual: string, real: readonly string[]][] = [
  ['80', ['80']],
  ['90', ['90', '100', '120']],
];

function generatedVariants(): KernelVariant[] {
  const pointwise = (
    ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64', 'bool'] as const
  ).flatMap((dtype) => {
    const signature = {
      ...{ name: 'k', inputs: [dtype, dtype], outputs: [dtype], scalars: 1 },
      expressions: ['larger(a, b) + power(a, s0)'],
    };
    const walk = { rank: 3, vectorLength: vectorLengthOf([dtype]), broadcast: new Set([1]) };
    return [
      densePointwiseSource(signature, [0, 1], new Set(), vectorLengthOf([dtype])),
      densePointwiseSource(signature, [0, 1], new Set([1]), 1),
      stridedPointwiseSource(signature, [0, 1], { ...walk, wide: false }),
      stridedPointwiseSource(signature, [0, 1], {
        ...walk,
        wide: true,
        vectorLength: 1,
        broadcast: new Set(),
      }),
    ];
  });
  const functions = [
    'exp(a)',
    'log(a)',
    'rsqrt(a)',
    'tanh(a)',
    'a * normcdf(a)',
    'a / (1 + exp(-a))',
    'sin(a) + cos(a)',
  ];
  const unary = (['float32', 'float64'] as const).map((dtype) => {
    const outputs = functions.map(() => dtype);
    return densePointwiseSource(
      { name: 'k', inputs: [dtype], outputs, expressions: functions, scalars: 0 },
      [0],
      new Set(),
      2,
    );
  });
  const folds: [DType, DType][] = [
    ['float32', 'float32'],
    ['bfloat16', 'bfloat16'],
    ['float16', 'float32'],
    ['float64', 'float64'],
    ['int32', 'int64'],
    ['bool', 'bool'],
  ];
  const reductions = folds.flatMap(([input, output]) =>
    (['zero', input === output ? 'highest' : 'lowest'] as const).flatMap((identity) => {
      const combine = { zero: 'x + y', lowest: 'larger(x, y)', highest: 'smaller(x, y)' }[identity];
      const signature = {
        name: 'k',
        input,
        output,
        accumulator: accumulatorDType(input, output),
        identity,
        combine,
        finish: 'x / n',
      };
      const vectorLength = vectorLengthOf([input]);
      return [
        reductionSource(signature, { kind: 'rows', width: 32, vectorLength }),
        reductionSource(signature, { kind: 'rows', width: 256, vectorLength: 1 }),
        reductionSource(signature, { kind: 'columns', width: 32, vectorLength }),
      ];
    }),
  );
  const distances = (['float32', 'bfloat16', 'float64'] as const).flatMap((input) => {
    const signature = {
      ...({ name: 'k', input, output: 'float64', accumulator: 'float64', identity: 'zero' } as const),
      ...{ term: '(x - center) * (x - center)', combine: 'x + y', finish: 'x' },
    };
    const vectorLength = vectorLengthOf([input]);
    return [
      reductionSource(signature, { kind: 'rows', width: 256, vectorLength }),
      reductionSource(signature, { kind: 'columns', width: 32, vectorLength }),
    ];
  });
  return [...pointwise, ...unary, ...reductions, ...distances].map((source) => ({ source, defines: {} }));
}

function variantsOfFile(file: string): KernelVariant[] {
  const source = readFileSync(join(kernelsFolder, file), 'utf8');
  return variantsOf[file]!.map((defines) => ({ source, defines }));
}

it('has variants for every kernel file', () => {
  const files = kernelFiles.filter((file) => file.endsWith('.cu'));
  expect(Object.keys(variantsOf).sort()).toEqual(files.sort());
});

it('no kernel has code of its own for an architecture behind the one that it is compiled for here', () => {
  const texts = [kernelsFolder, sharedKernels].flatMap((folder) =>
    globSync('**/*.{cu,cuh}', { cwd: folder }).map((file) => readFileSync(join(folder, file), 'utf8')),
  );
  const asked = texts.flatMap((text) => [...text.matchAll(/__CUDA_ARCH__ >= (\d+)|__CUDA_ARCH__ *[^)\s&]/g)]);
  expect(new Set(asked.map(([, architecture]) => architecture))).toEqual(new Set(['900']));
});

describe.skipIf(!foundNvcc)('nvcc', () => {
  it.each(architectures)('compiles every kernel for %s', async (virtual, real) => {
    const files = Object.keys(variantsOf).filter((file) => file !== hopperFile);
    await compileByNvcc(virtual, [...files.flatMap(variantsOfFile), ...generatedVariants()], {
      kernels: [kernels],
      real,
    });
  });

  it("compiles Hopper's own", async () => {
    await compileByNvcc('90a', variantsOfFile(hopperFile), { kernels: [kernels], large: true });
  });
});
