import { openCudaDevice } from '../../packages/tensor-core/src/backends/cuda/open-device.ts';

/** Says which GPU the tests run on, or why they are skipped. Throws without one if REQUIRE_GPU=1. */
export default function setup(): void {
  try {
    console.log(`GPU tests run on ${openCudaDevice(0).name}.`);
  } catch (error) {
    const reason = (error as Error).message;
    if (process.env.REQUIRE_GPU === '1') {
      throw new Error(`REQUIRE_GPU=1, but no GPU is usable: ${reason}`, { cause: error });
    }
    console.warn(`GPU tests are skipped: ${reason}`);
  }
}
