import { ffi } from '../../src/base/host/ffi.ts';
import { describe, expect, it } from 'vitest';
import { CudaDriver, type DriverFunctions } from '../../src/driver/driver.ts';
import { Launcher, LoadedKernel } from '../../src/launch/launch.ts';

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
  const streams = { current: { handle: stream } };
  return { calls, streams, launcher: new Launcher(driver, streams, () => {}) };
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
    expect(() => kernel(launcher, 'T').launch([1, 1, 1], 32, 0, [1])).toThrow(
      /parameter 0 of "T" is a structure/,
    );
    expect(() => kernel(launcher, 'pi').launch([1, 1, 1], 32, 0, [8, new Uint8Array(4)])).toThrow(
      /parameter 1 of "pi" is an int32.*cannot hold a structure of 4 bytes/,
    );
    expect(() => kernel(launcher, 'p'.repeat(129))).toThrow(/129 parameters are more than 128/);
    expect(() =>
      kernel(launcher, 'TT').launch([1, 1, 1], 32, 0, [new Uint8Array(8000), new Uint8Array(200)]),
    ).toThrow(/parameter 1 is a structure of 200 bytes.*more than the 8192/);
  });

  it('says which call failed, and how to find the kernel that did', () => {
    const { launcher } = fakeLauncher(700);
    const launch = () => kernel(launcher, 'p').launch([1, 1, 1], 32, 0, [1]);
    expect(launch).toThrow(/cuLaunchKernel failed: CUresult 700.*CUDA_LAUNCH_BLOCKING/);
  });
});

describe('what a launch may not be', () => {
  const launch = (letter: string, value: number) => {
    const { launcher, calls } = fakeLauncher();
    kernel(launcher, `p${letter}`).launch([1, 1, 1], 32, 0, [8, value]);
    expect(calls).toHaveLength(1);
    return argument(launcher, 1, 8);
  };
  const outside: Record<string, number[]> = {
    i: [2 ** 31, -(2 ** 31) - 1, 2 ** 32, 0.5, NaN, Infinity],
    u: [2 ** 32, -1, 1.5, NaN, -Infinity],
    l: [2 ** 53, -(2 ** 53), 0.25, NaN, Infinity],
    p: [-1, 2 ** 53, 0.5, NaN],
  };

  it.each(Object.entries(outside))(
    'refuses what a parameter %s cannot hold, and names it',
    (letter, values) => {
      for (const value of values) {
        expect(() => launch(letter, value)).toThrow(
          new RegExp(
            `Kernel k: parameter 1 of "p${letter}" .* it cannot hold ${String(value).replace('+', '\\+')}\\.`,
          ),
        );
      }
    },
  );

  it('takes the largest and the smallest that a parameter holds', () => {
    for (const value of [2 ** 31 - 1, -(2 ** 31), -0])
      expect(launch('i', value).getInt32(0, true)).toBe(value | 0);
    for (const value of [2 ** 32 - 1, 0]) expect(launch('u', value).getUint32(0, true)).toBe(value);
    for (const value of [2 ** 53 - 1, 1 - 2 ** 53]) {
      expect(launch('l', value).getBigInt64(0, true)).toBe(BigInt(value));
    }
    expect(launch('p', 2 ** 53 - 1).getBigUint64(0, true)).toBe(2n ** 53n - 1n);
    for (const value of [NaN, Infinity, 0.5]) {
      expect(launch('f', value).getFloat32(0, true)).toBe(value);
      expect(launch('d', value).getFloat64(0, true)).toBe(value);
    }
  });

  it.each([
    [[0, 1, 1], 32],
    [[2 ** 31, 1, 1], 32],
    [[1, 65_536, 1], 32],
    [[1, 1, 65_536], 32],
    [[1.5, 1, 1], 32],
    [[NaN, 1, 1], 32],
    [[1, 1, 1], 0],
    [[1, 1, 1], 1025],
    [[1, 1, 1], 31.5],
  ] as const)('refuses a grid of %j blocks of %d threads', (grid, blockSize) => {
    const { launcher, calls } = fakeLauncher();
    expect(() => kernel(launcher, 'p').launch(grid, blockSize, 0, [8])).toThrow(
      /Kernel k: (a grid of .* cannot be launched|blocks have 1 to 1024 threads)/,
    );
    expect(calls).toHaveLength(0);
  });

  it('takes the largest grid and block', () => {
    const { launcher, calls } = fakeLauncher();
    kernel(launcher, 'p').launch([2 ** 31 - 1, 65_535, 65_535], 1024, 48 * 1024, [8]);
    expect(calls[0]!.arguments_.slice(1, 8)).toEqual([2 ** 31 - 1, 65_535, 65_535, 1024, 1, 1, 48 * 1024]);
  });

  it('refuses more shared memory than is announced, and sizes that are none', () => {
    const { launcher } = fakeLauncher();
    const spec = { name: 'k', parameters: 'p' };
    const launchWith = (bytes: number, dynamicSharedBytes?: number) =>
      new LoadedKernel(launcher, { ...spec, dynamicSharedBytes }, 5).launch([1, 1, 1], 32, bytes, [8]);
    for (const bytes of [48 * 1024 + 1, -1, NaN, 0.5])
      expect(() => launchWith(bytes)).toThrow(/dynamicSharedBytes/);
    expect(() => launchWith(100_001, 100_000)).toThrow(/asks for 100001 .* 100000 are announced/);
    launchWith(100_000, 100_000);
  });

  it('refuses grids of generated kernels too', () => {
    const { launcher, calls } = fakeLauncher();
    expect(() => launcher.launch(5, 2 ** 31, 256, 24)).toThrow(/a generated kernel: a grid/);
    expect(() => launcher.launch(5, 1, 0, 24)).toThrow(/threads/);
    expect(calls).toHaveLength(0);
  });
});

describe('the current stream', () => {
  it('is the one at the time of each launch, dependent launches too', () => {
    const { calls, launcher, streams } = fakeLauncher();
    const streamOfConfig = () => {
      const words = new DataView(ffi().view(calls.at(-1)!.arguments_[0]!, 64));
      return Number(words.getBigUint64(32, true));
    };
    kernel(launcher, 'p', true).launch([4, 2, 3], 32, 16, [8]);
    expect(streamOfConfig()).toBe(stream);
    streams.current = { handle: 78 };
    launcher.launch(5, 1, 32, 8);
    expect(calls.at(-1)!.arguments_[8]).toBe(78);
    kernel(launcher, 'p').launch([1, 1, 1], 32, 0, [8]);
    expect(calls.at(-1)!.arguments_[8]).toBe(78);
    kernel(launcher, 'p', true).launch([4, 2, 3], 32, 16, [8]);
    expect(streamOfConfig()).toBe(78);
    const words = new Uint32Array(ffi().view(calls.at(-1)!.arguments_[0]!, 64).slice(0));
    expect([...words.subarray(0, 7), words[12]]).toEqual([4, 2, 3, 32, 1, 1, 16, 1]);
  });
});

describe('Launcher', () => {
  it('passes packed arguments by address and size', () => {
    const { launcher, calls } = fakeLauncher();
    launcher.launch(5, 10, 256, 24);
    const { arguments_ } = calls[0]!;
    expect(arguments_.slice(0, 10)).toEqual([5, 10, 1, 1, 256, 1, 1, 0, stream, 0]);
    const extra = new BigUint64Array(ffi().view(arguments_[10]!, 64));
    const sizeOffset = Number(extra[3]) - arguments_[10]!;
    expect([extra[0], extra[1], extra[2], extra[4]]).toEqual([
      1n,
      BigInt(launcher.arguments.address),
      2n,
      0n,
    ]);
    expect(extra[sizeOffset / 8]).toBe(24n);
  });
});
