import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

// Tests that need a GPU. Without one they are skipped, visibly; with REQUIRE_GPU=1 that is a failure.
export default defineConfig({
  root: process.cwd(),
  resolve: { conditions: ['roofline-source'] },
  ssr: { resolve: { conditions: ['roofline-source'] } },
  test: {
    include: ['test/gpu/**/*.test.ts'],
    globalSetup: [file('./gpu/announce.ts')],
    setupFiles: [file('./gpu/skip-without-gpu.ts')],
    passWithNoTests: true,
    testTimeout: 300_000,
    // One process at a time has the GPU, so that memory and timings are a test's own.
    fileParallelism: false,
  },
});
