import { DeviceError } from '@roofline/cuda/host';

/**
 * What multiplies float32 matrices at full precision: `simt` is cublasLt on the CUDA cores, `split-half` is
 * matmul-split-half.ts on Hopper's tensor cores, `auto` whichever is expected to be faster.
 */
export type Float32MatmulKernel = 'auto' | 'simt' | 'split-half';

const kernels: readonly string[] = ['auto', 'simt', 'split-half'] satisfies Float32MatmulKernel[];

let chosen: Float32MatmulKernel | null = null;

/** Chooses for all products from now on. The default is ROOFLINE_FLOAT32_MATMUL, or `auto`. */
export function setFloat32MatmulKernel(kernel: Float32MatmulKernel): void {
  chosen = checked(kernel, 'setFloat32MatmulKernel');
}

export function getFloat32MatmulKernel(): Float32MatmulKernel {
  // Like other variables, it may be set to an empty text.
  chosen ??= checked(process.env.ROOFLINE_FLOAT32_MATMUL || 'auto', 'ROOFLINE_FLOAT32_MATMUL');
  return chosen;
}

function checked(kernel: string, source: string): Float32MatmulKernel {
  if (!kernels.includes(kernel)) {
    throw new DeviceError(`${source}: there is no kernel "${kernel}"; take ${kernels.join(', ')}.`);
  }
  return kernel as Float32MatmulKernel;
}
