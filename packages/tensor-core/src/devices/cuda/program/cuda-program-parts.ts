import type { KernelBuilder } from '../compile/compile.ts';
import type { CudaDevice } from '../device.ts';
import type { CudaDriver } from '../driver/driver.ts';
import type { Launcher } from '../launch/launch.ts';
import type { CudaLowering } from '../lower.ts';

/** What a program needs of its device to capture its calls and to run them. */
export interface CudaProgramParts {
  readonly device: CudaDevice;
  readonly driver: CudaDriver;
  readonly launcher: Launcher;
  readonly lowering: CudaLowering;
  readonly builder: KernelBuilder;
}
