import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Under `npm test` a package that passes is one line, and what fails is printed in full. */
const isSummarized = process.env['ROOFLINE_TEST_SUMMARY'] !== undefined;
const summaryReporter = fileURLToPath(new URL('./summary-reporter.ts', import.meta.url));

/**
 * Files that need a process of their own: they mock modules, or say that they are `alone in a process`, and why. All
 * others share two processes, which load the packages once and not once a file, and whose ops run in one thread.
 */
const areAlone = globSync(['test/**/*.test.ts', 'tooling/test/**/*.test.ts'], {
  exclude: ['test/gpu/**', 'test/lifetimes/**', '**/node_modules/**'],
}).filter(isAlone);

export function isAlone(file: string): boolean {
  return /\bvi\.(mock|doMock|hoisted|resetModules)\(|alone in a process/.test(readFileSync(file, 'utf8'));
}

/** Begins with what takes longest, or workers end far apart. Vitest knows by the run before; before the first one nobody does. */
class ProgramsFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    if (sorted.some((file) => this.ctx.cache.getTestSpecificationResult(file))) return sorted;
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const first = new Set(sorted.filter(({ moduleId }) => startsPrograms(moduleId)));
    const rank = (file: TestSpecification) => 2 * projects.indexOf(file.project) + (first.has(file) ? 0 : 1);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Whether a file starts processes, or compiles for a GPU, real or emulated. */
function startsPrograms(file: string): boolean {
  return /child_process|\/run-ranks|\/run-cli|\/workshop|[eE]mulated|Nvcc/.test(readFileSync(file, 'utf8'));
}

/**
 * For tests that force garbage collections. A function that is being optimized concurrently keeps what it closes over
 * alive: with V8's compiler threads 30 of 300 objects outlived two collections, without them none.
 */
export const collectingNodeFlags = ['--expose-gc', '--no-concurrent-recompilation'];

// Tests read the packages' TypeScript sources, so that a failing line is the line one edits.
export default defineConfig({
  root: process.cwd(),
  resolve: { conditions: ['roofline-source'] },
  ssr: { resolve: { conditions: ['roofline-source'] } },
  test: {
    // Many tests start processes or compile kernels, which takes long where other tasks run at the same time.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    // Tests start hundreds of processes from the sources, which read them stripped and compiled from here.
    env: {
      NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/node-compile', import.meta.url)),
      // Threads that wait for the next op spin, and take the cores from the tests that run at the same time: PyTorch's too,
      // which then take ten times as long.
      ROOFLINE_CPU_THREADS: '1',
      OMP_NUM_THREADS: '1',
    },
    maxWorkers: 2,
    sequence: { sequencer: ProgramsFirst },
    // What tests make is mostly garbage at once: with more room for it a twentieth less is spent on collecting.
    execArgv: ['--max-semi-space-size=64'],
    ...(isSummarized && { reporters: ['minimal', summaryReporter] }),
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', 'tooling/test/**/*.test.ts'],
          exclude: ['test/gpu/**', 'test/lifetimes/**', 'node_modules/**', ...areAlone],
          isolate: false,
          setupFiles: [fileURLToPath(new URL('./keep-environment.ts', import.meta.url))],
        },
      },
      ...(areAlone.length > 0
        ? [
            {
              extends: true as const,
              // As many threads as a user's process has.
              test: { name: 'alone', include: areAlone, env: { ROOFLINE_CPU_THREADS: '' } },
            },
          ]
        : []),
      // Tests that force garbage collections.
      {
        extends: true,
        test: {
          name: 'lifetimes',
          include: ['test/lifetimes/**/*.test.ts'],
          execArgv: collectingNodeFlags,
          setupFiles: [fileURLToPath(new URL('./collect-garbage.ts', import.meta.url))],
        },
      },
    ],
  },
});
