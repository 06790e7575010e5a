import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { vi } from 'vitest';

/** Builds a library that is taken for NVRTC, by threads too, and gives what ends that: for `beforeAll`. */
export function standInForNvrtc(): () => void {
  const libraries = mkdtempSync(join(tmpdir(), 'roofline-nvrtc-'));
  const source = fileURLToPath(new URL('fake-nvrtc.c', import.meta.url));
  execFileSync('gcc', ['-shared', '-fPIC', '-w', source, '-o', join(libraries, 'libnvrtc.so.13')]);
  vi.stubEnv('ROOFLINE_CUDA_LIBRARIES', libraries);
  return () => {
    vi.unstubAllEnvs();
    rmSync(libraries, { recursive: true });
  };
}
