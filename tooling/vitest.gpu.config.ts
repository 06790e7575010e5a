import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// Tests that need a GPU. Without one they are skipped, visibly; with REQUIRE_GPU=1 that is a failure.
export default defineConfig({
  root: process.cwd(),
  resolve: { conditions: ['roofline-source'] },
  ssr: { resolve: { conditions: ['roofline-source'] } },
  test: {
    include: ['test/gpu/**/*.test.ts'],
    globalSetup: [fileURLToPath(new URL('./gpu-setup.ts', import.meta.url))],
    passWithNoTests: true,
    testTimeout: 300_000,
    // One process at a time has the GPU, so that memory and timings are a test's own.
    fileParallelism: false,
  },
});
