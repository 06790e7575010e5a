import type { KernelBuilder } from '../../cuda/nvrtc/compile.ts';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import type { CudaDriver } from '../../cuda/driver/driver.ts';
import type { Launcher } from '../../cuda/launch/launch.ts';
import type { CudaLowering } from '../../backends/cuda/lower.ts';

/** What a program needs of its device to capture its calls and to run them. */
export interface CudaProgramParts {
  readonly device: CudaDevice;
  readonly driver: CudaDriver;
  readonly launcher: Launcher;
  readonly lowering: CudaLowering;
  readonly builder: KernelBuilder;
}
