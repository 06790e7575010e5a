import { basename } from 'node:path';
import type { CudaKernel, KernelSpec } from '../kernel.ts';
import type { KernelBuilder } from './compile.ts';
import type { CudaDriver } from '../driver/driver.ts';
import { type Launcher, LoadedKernel } from '../launch/launch.ts';
import { sharedBytesWithoutAsking } from '../launch/launch-limits.ts';

const maxDynamicSharedAttribute = 8;

/** The kernels loaded on one device. A file compiled with the same definitions is loaded once. */
export class KernelModules {
  readonly #driver: CudaDriver;
  readonly #builder: KernelBuilder;
  readonly #launcher: Launcher;
  readonly #bySpec = new Map<KernelSpec, LoadedKernel>();
  readonly #byText = new Map<string, LoadedKernel>();
  readonly #modules = new Map<string, number>();

  constructor(driver: CudaDriver, builder: KernelBuilder, launcher: Launcher) {
    this.#driver = driver;
    this.#builder = builder;
    this.#launcher = launcher;
  }

  /** The kernel of a spec: by identity, else by what the spec says, else compiled. */
  kernel(spec: KernelSpec): CudaKernel {
    let kernel = this.#bySpec.get(spec);
    if (!kernel) {
      kernel = this.#load(spec);
      this.#bySpec.set(spec, kernel);
    }
    return kernel;
  }

  /** A generated kernel's CUfunction; `source` has one kernel, called `name`. */
  generated(name: string, source: string): number {
    return this.#function(this.#loadModule(this.#builder.buildText(name, source)), name);
  }

  #load(spec: KernelSpec): LoadedKernel {
    const { source, name, parameters, defines = {}, headers = {} } = spec;
    const { dynamicSharedBytes = 0, overlapsPrevious = false } = spec;
    const moduleText = JSON.stringify([source.href, defines, headers]);
    const text = JSON.stringify([moduleText, name, parameters, dynamicSharedBytes, overlapsPrevious]);
    const known = this.#byText.get(text);
    if (known) return known;
    this.#builder.checkDeclared(spec);
    let module = this.#modules.get(moduleText);
    if (module === undefined) {
      module = this.#loadModule(this.#builder.buildFile(source, defines, headers));
      this.#modules.set(moduleText, module);
    }
    const handle = this.#function(module, name, source);
    if (dynamicSharedBytes > sharedBytesWithoutAsking) {
      const { functions } = this.#driver;
      const result = functions.cuFuncSetAttribute(handle, maxDynamicSharedAttribute, dynamicSharedBytes);
      this.#driver.check(
        result,
        `Kernel ${name}: cuFuncSetAttribute(${dynamicSharedBytes} bytes of shared memory)`,
      );
    }
    const kernel = new LoadedKernel(this.#launcher, spec, handle);
    this.#byText.set(text, kernel);
    return kernel;
  }

  #loadModule(image: Uint8Array): number {
    const { functions } = this.#driver;
    const call = 'cuModuleLoadData (is NVRTC newer than the driver? `roofline doctor` shows both)';
    return this.#driver.handleFrom(call, (out) => functions.cuModuleLoadData(out, image));
  }

  /** Names the file for a kernel that it does not declare. */
  #function(module: number, name: string, source?: URL): number {
    const { functions } = this.#driver;
    const where =
      source && `, looked for in ${basename(source.pathname)}, which must declare it extern "C" __global__`;
    return this.#driver.handleFrom(`cuModuleGetFunction(${name}${where ?? ''})`, (out) =>
      functions.cuModuleGetFunction(out, module, name),
    );
  }
}
