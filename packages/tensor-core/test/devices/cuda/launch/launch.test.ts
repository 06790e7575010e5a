import { describe, expect, it } from 'vitest';
import { CudaDriver, type DriverFunctions } from '../../../../src/devices/cuda/driver/driver.ts';
import { Launcher, LoadedKernel } from '../../../../src/devices/cuda/launch/launch.ts';

const stream = 77;

function fakeLauncher(result = 0) {
  const calls: { name: string; arguments_: number[] }[] = [];
  const record =
    (name: string) =>
    (...arguments_: number[]) => {
      calls.push({ name, arguments_ });
      return result;
    };
  const functions = {
    cuLaunchKernel: record('cuLaunchKernel'),
    cuLaunchKernelEx: record('cuLaunchKernelEx'),
  };
  const driver = new CudaDriver(functions as unknown as DriverFunctions, (status) => `CUresult ${status}`);
  return { calls, launcher: new Launcher(driver, { current: { handle: stream } }) };
}

/** The bytes of argument `i` of the last launch by pointers. */
function argument({ pointers, arguments: memory }: Launcher, i: number, byteLength: number): DataView {
  const offset = pointers.readUint64(8 * i) - memory.address;
  return new DataView(memory.bytes.buffer, memory.bytes.byteOffset + offset, byteLength);
}

const kernel = (launcher: Launcher, parameters: string, overlapsPrevious = false) =>
  new LoadedKernel(launcher, { name: 'k', parameters, overlapsPrevious }, 5);

describe('LoadedKernel', () => {
  it('passes pointers, integers and floats without losing bits', () => {
    const { launcher, calls } = fakeLauncher();
    const pointer = 0x7f12_3456_7890;
    const values = [pointer, -7, -(2 ** 40), 0.5, Math.PI, 2 ** 32 - 1];
    kernel(launcher, 'pilfdu').launch([1, 2, 3], 64, 16, values);
    expect(calls).toEqual([
      {
        name: 'cuLaunchKernel',
        arguments_: [5, 1, 2, 3, 64, 1, 1, 16, stream, launcher.pointers.address, 0],
      },
    ]);
    expect(argument(launcher, 0, 8).getBigUint64(0, true)).toBe(BigInt(pointer));
    expect(argument(launcher, 1, 4).getInt32(0, true)).toBe(-7);
    expect(argument(launcher, 2, 8).getBigInt64(0, true)).toBe(-(2n ** 40n));
    expect(argument(launcher, 3, 4).getFloat32(0, true)).toBe(0.5);
    expect(argument(launcher, 4, 8).getFloat64(0, true)).toBe(Math.PI);
    expect(argument(launcher, 5, 4).getUint32(0, true)).toBe(2 ** 32 - 1);
  });

  it('passes structures by their bytes, each aligned to 64', () => {
    const { launcher } = fakeLauncher();
    const [first, second] = [new Uint8Array(112).fill(3), new Uint8Array(128).fill(4)];
    kernel(launcher, 'TiT').launch([1, 1, 1], 32, 0, [first, 9, second]);
    expect(launcher.pointers.readUint64(0) % 64).toBe(0);
    expect(launcher.pointers.readUint64(16) % 64).toBe(0);
    expect(argument(launcher, 0, 112).getUint8(111)).toBe(3);
    expect(argument(launcher, 1, 4).getInt32(0, true)).toBe(9);
    expect(argument(launcher, 2, 128).getUint8(0)).toBe(4);
  });

  it('asks for programmatic dependent launch where the spec does', () => {
    const { launcher, calls } = fakeLauncher();
    kernel(launcher, 'p', true).launch([4, 1, 1], 32, 0, [8]);
    expect(calls[0]!.name).toBe('cuLaunchKernelEx');
    expect(calls[0]!.arguments_.slice(1)).toEqual([5, launcher.pointers.address, 0]);
  });

  it('refuses unknown letters, wrong numbers of arguments and numbers for structures', () => {
    const { launcher } = fakeLauncher();
    expect(() => kernel(launcher, 'px')).toThrow(/Kernel k: "x" in "px"/);
    expect(() => kernel(launcher, 'pi').launch([1, 1, 1], 32, 0, [1])).toThrow(
      /takes 2 arguments \(pi\), got 1/,
    );
    expect(() => kernel(launcher, 'T').launch([1, 1, 1], 32, 0, [1])).toThrow(/takes its bytes/);
  });

  it('says which call failed, and how to find the kernel that did', () => {
    const { launcher } = fakeLauncher(700);
    const launch = () => kernel(launcher, 'p').launch([1, 1, 1], 32, 0, [1]);
    expect(launch).toThrow(/cuLaunchKernel failed: CUresult 700.*CUDA_LAUNCH_BLOCKING/);
  });
});

describe('Launcher', () => {
  it('passes packed arguments by address and size', () => {
    const { launcher, calls } = fakeLauncher();
    launcher.launch(5, 10, 256, 24);
    const { arguments_ } = calls[0]!;
    expect(arguments_.slice(0, 10)).toEqual([5, 10, 1, 1, 256, 1, 1, 0, stream, 0]);
    expect(arguments_[10]).toBeGreaterThan(0);
  });
});
