interface Group {
  readonly name: string;
  /** Patterns, from the repository's root. */
  readonly sources: readonly string[];
  readonly without?: readonly string[];
  readonly tests: readonly string[];
}

/** Those passes that need optimizers in their programs, and what they share. */
const updates =
  'packages/tensor-core/src/compile/passes/{scale-in-update,update-early,partial-update,copying-op,rewrite}.ts';
/** Those of them that say what else an update writes or reads. */
const updatedCopies =
  'packages/tensor-core/src/compile/passes/{carry-low-precision-copies,update-by-products}.ts';

const testsOfUpdates = [
  'packages/tensor-core/test/compile/passes/merge-{gradient,projection}-conditions.test.ts',
  'packages/optim/test/{update-conditions,waiting-updates,update-by-products}.test.ts',
  'packages/tensor-core/test/compile/passes/carry-low-precision-copies.test.ts',
  'packages/optim/test/{clipped-updates,early-updates,low-precision-copies}.test.ts',
  'packages/optim/test/random-passes.test.ts',
];

/** Functions compiled as users do, on both devices. */
const functions = [
  'packages/tensor-core/test/compile/{values,captured-state,captured-gradients,guards,compile}.test.ts',
  'packages/tensor-core/test/compile/{refusals,shared-memory,state-as-eager,strided-arguments}.test.ts',
  'packages/tensor-core/test/compile/{memory-of-others,depend-on,executable,export-onnx}.test.ts',
];

/**
 * Where a program is rewritten, reordered or divided, and the tests of that, those first that take least and see most:
 * calls in symbols, then on an emulated GPU, then random programs.
 */
export const groups: readonly Group[] = [
  {
    name: 'passes',
    sources: ['packages/tensor-core/src/compile/passes/*.ts'],
    without: [updates, updatedCopies],
    tests: [
      'packages/tensor-core/test/compile/passes/[abd-z]*.test.ts',
      'packages/tensor-core/test/compile/random-passes.test.ts',
    ],
  },
  { name: 'updates', sources: [updates], tests: testsOfUpdates },
  { name: 'updated-copies', sources: [updatedCopies], tests: testsOfUpdates },
  {
    name: 'parallel',
    sources: ['packages/collectives/src/parallel/*.ts'],
    tests: ['packages/collectives/test/parallel/*.test.ts'],
  },
  {
    name: 'front',
    sources: ['packages/tensor-core/src/compile/*.ts'],
    tests: functions,
  },
  {
    name: 'trace',
    sources: ['packages/tensor-core/src/compile/trace/*.ts'],
    tests: [...functions, 'packages/tensor-core/test/compile/cuda/cuda-executable.test.ts'],
  },
  {
    name: 'graph',
    sources: ['packages/tensor-core/src/compile/{graph,executable}/*.ts'],
    tests: ['packages/tensor-core/test/compile/cpu/cpu-executable.test.ts', ...functions],
  },
  {
    name: 'cuda',
    sources: ['packages/tensor-core/src/compile/cuda/*.ts'],
    tests: [
      'packages/tensor-core/test/compile/cuda/{branches,branched-programs,in-place,schedule,arena-plan,given-memory}.test.ts',
      'packages/tensor-core/test/compile/cuda/{memory-budget,shared-copies,carried-copies,cuda-executable}.test.ts',
      'packages/tensor-core/test/compile/{postponed-kernels,cuda-executable-memory}.test.ts',
      ...functions,
      'packages/tensor-core/test/compile/cuda/output-loans.test.ts',
    ],
  },
  {
    name: 'cpu',
    sources: ['packages/tensor-core/src/compile/cpu/*.ts'],
    tests: ['packages/tensor-core/test/compile/cpu/*.test.ts', ...functions],
  },
];
