import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { vi } from 'vitest';

const driverModule = new URL('../../src/driver/driver.ts', import.meta.url);

/** All functions that are asked of libcuda; those that are not given fail. */
function sourceOf(functions: string): string {
  const given = `
    int cuGetErrorName(int result, const char **text) { *text = "CUDA_ERROR_NAME"; return 0; }
    int cuGetErrorString(int result, const char **text) { *text = "its text"; return 0; }
    ${functions}`;
  const asked = readFileSync(driverModule, 'utf8').matchAll(/'int (cu\w+)\(/g);
  const names = Array.from(asked, ([, name]) => name!).filter((name) => !given.includes(`int ${name}(`));
  return `
    #include <stdlib.h>
    #include <string.h>
    ${given}
    ${names.map((name) => `int ${name}() { return 3; }`).join('\n')}`;
}

/** Builds a library of these functions in C that is taken for libcuda; gives its folder, and what ends that. */
export function standInForDriver(functions: string): { readonly folder: string; end(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-driver-'));
  writeFileSync(join(folder, 'driver.c'), sourceOf(functions));
  execFileSync('gcc', ['-shared', '-fPIC', '-w', 'driver.c', '-o', 'libcuda.so.1'], { cwd: folder });
  const others = process.env.ROOFLINE_CUDA_LIBRARIES ?? '';
  vi.stubEnv('ROOFLINE_CUDA_LIBRARIES', [folder, others].join(delimiter));
  return {
    folder,
    end() {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    },
  };
}
