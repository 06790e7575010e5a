import { describe, expect, it } from 'vitest';
import type { Defines, KernelBuilder } from '../../src/nvrtc/compile.ts';
import { KernelModules } from '../../src/nvrtc/modules.ts';
import { CudaDriver, type DriverFunctions } from '../../src/driver/driver.ts';
import { Launcher } from '../../src/launch/launch.ts';
import type { KernelSpec } from '../../src/kernel.ts';

/** Kernels on a driver that gives each module and function a number, and writes down what it is asked. */
function make() {
  const built: [string, Defines][] = [];
  const found: [number, string][] = [];
  const announced: [number, number, number][] = [];
  const launched: number[] = [];
  const driver: CudaDriver = new CudaDriver(
    {
      cuModuleLoadData: (_: number, image: Uint8Array) => give(image[0]!),
      cuModuleGetFunction: (_: number, module: number, name: string) =>
        give(100 + found.push([module, name])),
      cuFuncSetAttribute: (...all: [number, number, number]) => {
        announced.push(all);
        return 0;
      },
      cuLaunchKernel: (kernel: number) => {
        launched.push(kernel);
        return 0;
      },
      cuLaunchKernelEx: () => 0,
    } as unknown as DriverFunctions,
    String,
  );
  function give(value: number): number {
    driver.result.writeInt64(0, value);
    return 0;
  }
  const builder = {
    checkDeclared: () => {},
    buildFile: (source: URL, defines: Defines) => Uint8Array.of(built.push([source.href, defines])),
    buildText: (name: string, text: string) => Uint8Array.of(built.push([name, { text }])),
  } as unknown as KernelBuilder;
  const modules = new KernelModules(
    driver,
    builder,
    new Launcher(driver, { current: { handle: 1 } }, () => {}),
  );
  return { built, found, announced, launched, modules };
}

const base: KernelSpec = {
  source: new URL('file:///kernels/a.cu'),
  name: 'f',
  parameters: 'pi',
  defines: { N: 1 },
};

describe('KernelModules', () => {
  it('finds a spec by identity, and an equal one by what it says', () => {
    const { built, found, modules } = make();
    const kernel = modules.kernel(base);
    expect(modules.kernel(base)).toBe(kernel);
    expect(modules.kernel({ ...base, defines: { N: 1 } })).toBe(kernel);
    expect([built.length, found.length]).toEqual([1, 1]);
  });

  it.each<[string, Partial<KernelSpec>, number]>([
    ['source', { source: new URL('file:///kernels/b.cu') }, 2],
    ['name', { name: 'g' }, 1],
    ['parameters', { parameters: 'pu' }, 1],
    ["definition's value", { defines: { N: 2 } }, 2],
    ["definition's name", { defines: { M: 1 } }, 2],
    ['definition more', { defines: { N: 1, M: 1 } }, 2],
    ['dynamicSharedBytes', { dynamicSharedBytes: 50_000 }, 1],
    ['overlapsPrevious', { overlapsPrevious: true }, 1],
  ])('tells specs apart that differ in their %s', (_, change, modulesBuilt) => {
    const { built, modules } = make();
    const kernel = modules.kernel(base);
    const other = modules.kernel({ ...base, ...change });
    expect(other).not.toBe(kernel);
    expect(modules.kernel({ ...base, ...change })).toBe(other);
    expect(modules.kernel({ ...base })).toBe(kernel);
    expect(built).toHaveLength(modulesBuilt);
  });

  it('announces dynamic shared memory above 48 KiB, and no other', () => {
    const { announced, modules } = make();
    modules.kernel({ ...base, dynamicSharedBytes: 48 * 1024 });
    expect(announced).toEqual([]);
    modules.kernel({ ...base, dynamicSharedBytes: 48 * 1024 + 1 });
    expect(announced).toEqual([[102, 8, 48 * 1024 + 1]]);
  });

  it('launches the function that it found', () => {
    const { launched, modules } = make();
    modules.kernel(base).launch([1, 1, 1], 32, 0, [8, 1]);
    modules.kernel({ ...base, name: 'g' }).launch([1, 1, 1], 32, 0, [8, 1]);
    expect(launched).toEqual([101, 102]);
    expect(modules.generated('h', 'text')).toBe(103);
  });
});
