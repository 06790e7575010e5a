import { describe, expect, it } from 'vitest';
import { CudaDriver, type DriverFunctions } from '../../src/cuda/driver.ts';
import { Launcher, LoadedKernel, packParameters } from '../../src/cuda/launch.ts';
import type { CudaStream } from '../../src/cuda/stream.ts';

function fakeLauncher(result = 0) {
  const calls: number[][] = [];
  const functions = {
    cuLaunchKernel: (...arguments_: number[]) => {
      calls.push(arguments_);
      return result;
    },
  } as unknown as DriverFunctions;
  const driver = new CudaDriver(functions, (status) => `CUresult ${status}`);
  return { calls, launcher: new Launcher(driver, { handle: 77 } as CudaStream) };
}

describe('packParameters', () => {
  it('aligns each parameter as C does', () => {
    expect(packParameters('k', 'pip')).toEqual({ offsets: [0, 8, 16], byteLength: 24 });
    expect(packParameters('k', 'ifld')).toEqual({ offsets: [0, 4, 8, 16], byteLength: 24 });
    expect(packParameters('k', 'iTu')).toEqual({ offsets: [0, 64, 192], byteLength: 196 });
  });

  it('names a letter that means nothing', () => {
    expect(() => packParameters('k', 'px')).toThrow(/Kernel k: "x" in "px"/);
  });
});

describe('LoadedKernel', () => {
  it('packs pointers, integers and floats without losing bits', () => {
    const { launcher, calls } = fakeLauncher();
    const pointer = 0x7f12_3456_7890;
    new LoadedKernel(launcher, 'k', 5, 'pilfdu').launch([1, 2, 3], 64, 16, [pointer, -7, -(2 ** 40), 0.5, Math.PI, 2 ** 32 - 1]);
    expect(calls).toHaveLength(1);
    expect(calls[0]!.slice(0, 9)).toEqual([5, 1, 2, 3, 64, 1, 1, 16, 77]);
    const view = new DataView(launcher.arguments.bytes.buffer, launcher.arguments.bytes.byteOffset);
    expect(view.getBigUint64(0, true)).toBe(BigInt(pointer));
    expect(view.getInt32(8, true)).toBe(-7);
    expect(view.getBigInt64(16, true)).toBe(-(2n ** 40n));
    expect(view.getFloat32(24, true)).toBe(0.5);
    expect(view.getFloat64(32, true)).toBe(Math.PI);
    expect(view.getUint32(40, true)).toBe(2 ** 32 - 1);
  });

  it('copies a tensor map to an address aligned to 64', () => {
    const { launcher } = fakeLauncher();
    const map = new Uint8Array(128).fill(3);
    new LoadedKernel(launcher, 'k', 5, 'iT').launch([1, 1, 1], 32, 0, [1, map]);
    expect(launcher.arguments.address % 64).toBe(0);
    expect([...launcher.arguments.bytes.subarray(64, 192)]).toEqual([...map]);
  });

  it('refuses a wrong number of arguments, and says which call failed', () => {
    const { launcher } = fakeLauncher(700);
    const kernel = new LoadedKernel(launcher, 'k', 5, 'pi');
    expect(() => kernel.launch([1, 1, 1], 32, 0, [1])).toThrow(/takes 2 arguments \(pi\), got 1/);
    expect(() => kernel.launch([1, 1, 1], 32, 0, [1, 2])).toThrow(/cuLaunchKernel failed: CUresult 700.*CUDA_LAUNCH_BLOCKING/);
  });
});
