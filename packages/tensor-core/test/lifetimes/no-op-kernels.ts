import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KernelBuilder } from '../../src/devices/cuda/compile/compile.ts';
import { KernelCache } from '../../src/devices/cuda/compile/kernel-cache.ts';
import type { CompileRequest, KernelCompiler } from '../../src/devices/cuda/compile/nvrtc.ts';
import { CudaDevice } from '../../src/devices/cuda/device.ts';
import { CublasLt } from '../../src/devices/cuda/matmul/cublaslt.ts';
import { CudaDriver } from '../../src/devices/cuda/driver/driver.ts';
import { EmulatedDriver } from '../../src/testing/emulated-driver.ts';

/** Gives every kernel an entry that does nothing: a compilation then takes milliseconds, not a second. */
class NoOpCompiler implements KernelCompiler {
  readonly version = 'no-op 1';

  compile({ source }: CompileRequest): Uint8Array {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-no-op-'));
    try {
      const kernels = source.matchAll(/__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(/g);
      const entries = [...new Set([...kernels].map(([, name]) => name))].map(
        (name) =>
          `void* capture_${name}() { return 0; }\nvoid* copy_${name}() { return 0; }\nint run_${name}() { return 0; }\n`,
      );
      const library = join(folder, 'kernel.so');
      execFileSync('g++', ['-shared', '-fPIC', '-O0', '-x', 'c', '-', '-o', library], {
        input: entries.join(''),
      });
      return new Uint8Array(readFileSync(library));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

/**
 * A CudaDevice that allocates, launches and frees as a GPU does but whose kernels write nothing: for what holds of an op
 * whatever its values are.
 */
export function openNoOpDevice(): CudaDevice {
  const cache = new KernelCache(join(tmpdir(), 'roofline-no-op-kernels'));
  const emulated = new EmulatedDriver(2 ** 30, () => {}, 1);
  const driver = new CudaDriver(emulated.functions, (result) => emulated.describe(result));
  return new CudaDevice(driver, 0, {
    makeBuilder: (architecture) => new KernelBuilder(architecture, () => new NoOpCompiler(), cache),
    makeFloat32Product: () => ({ tryRun: () => true }),
    loadCublasLt: () => new CublasLt(),
    poisonsFreedMemory: false,
  });
}
