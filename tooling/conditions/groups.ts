interface Group {
  readonly name: string;
  /** Patterns, from the repository's root. */
  readonly sources: readonly string[];
  readonly without?: readonly string[];
  readonly tests: readonly string[];
}

/** Those passes that need optimizers in their programs, and what they share. */
const updates =
  'packages/tensor-core/src/compile/passes/{scale-in-update,update-early,update-by-products,partial-update,carry-low-precision-copies,copying-op,rewrite}.ts';

/**
 * Where a program is rewritten, reordered or divided, and the tests of that, those first that take least and see most:
 * calls in symbols, then on an emulated GPU, then random programs.
 */
export const groups: readonly Group[] = [
  {
    name: 'passes',
    sources: ['packages/tensor-core/src/compile/passes/*.ts'],
    without: [updates],
    tests: [
      'packages/tensor-core/test/compile/passes/[abd-z]*.test.ts',
      'packages/tensor-core/test/compile/random-passes.test.ts',
    ],
  },
  {
    name: 'updates',
    sources: [updates],
    tests: [
      'packages/tensor-core/test/compile/passes/merge-{gradient,projection}-conditions.test.ts',
      'packages/optim/test/{update-conditions,update-by-products}.test.ts',
      'packages/tensor-core/test/compile/passes/carry-low-precision-copies.test.ts',
      'packages/optim/test/{clipped-updates,early-updates,low-precision-copies}.test.ts',
      'packages/optim/test/random-passes.test.ts',
    ],
  },
  {
    name: 'parallel',
    sources: ['packages/collectives/src/parallel/*.ts'],
    tests: ['packages/collectives/test/parallel/*.test.ts'],
  },
  {
    name: 'compile',
    sources: [
      'packages/tensor-core/src/compile/*.ts',
      'packages/tensor-core/src/compile/{graph,trace,executable,cuda,cpu}/*.ts',
    ],
    tests: [
      'packages/tensor-core/test/compile/passes/*.test.ts',
      'packages/tensor-core/test/compile/**/*.test.ts',
      'packages/optim/test/{updates,clipped-updates,early-updates,low-precision-copies}.test.ts',
      'packages/optim/test/random-passes.test.ts',
    ],
  },
];
