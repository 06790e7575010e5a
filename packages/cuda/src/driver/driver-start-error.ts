import { UnusableLibraryError } from './unusable-library-error.ts';

/** By CUresult of cuInit. */
const remedies: ReadonlyMap<number, string> = new Map([
  // CUDA_ERROR_NO_DEVICE
  [
    100,
    'The driver is there and sees no GPU: on a cluster take a job that has one (`srun --gpus=1`), in a container pass ' +
      "them in (`docker run --gpus all`), and see that CUDA_VISIBLE_DEVICES hides none; for tensors there is the device 'cpu'.",
  ],
  // CUDA_ERROR_INVALID_DEVICE
  [101, 'Does CUDA_VISIBLE_DEVICES name GPUs that `nvidia-smi -L` lists?'],
  // CUDA_ERROR_OPERATING_SYSTEM
  [
    304,
    'This process may not open /dev/nvidia*: in a container pass the GPUs in (`docker run --gpus all`), on a cluster take a ' +
      'job that has one.',
  ],
  // CUDA_ERROR_SYSTEM_NOT_READY
  [802, 'Machines with NVSwitch need their fabric manager: start nvidia-fabricmanager.'],
  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
  [803, 'The driver was updated and its kernel module was not: reboot, or load the module anew.'],
  // CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
  [804, "A newer libcuda of a package cuda-compat is found first: take it from the loader's path."],
  // CUDA_ERROR_UNKNOWN
  [999, 'Is the kernel module nvidia_uvm loaded (`nvidia-modprobe -u`)? Does `nvidia-smi` list the GPU?'],
]);

/** The error for a driver that is installed and does not start: `problem` is what cuInit said with that result. */
export function driverStartError(result: number, problem: string): UnusableLibraryError {
  const remedy =
    remedies.get(result) ?? "See whether `nvidia-smi` runs; for tensors there is the device 'cpu'.";
  return new UnusableLibraryError(problem, remedy);
}
