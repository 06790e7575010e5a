import type { MatmulRequest } from '../op/cuda-lowering.ts';
import { ffi } from '@roofline/cuda/host';
import type { Float32Product } from '../backends/cuda/matmul/matmul.ts';

/** float32 products in JavaScript, over memory that emulated device addresses name. */
export class EmulatedMatmul implements Float32Product {
  readonly #queue: (run: () => void) => void;

  /** `queue` puts work on the device's current stream. */
  constructor(queue: (run: () => void) => void) {
    this.#queue = queue;
  }

  tryRun(request: MatmulRequest): boolean {
    this.#queue(() => this.#multiply(request));
    return true;
  }

  #multiply(request: MatmulRequest): void {
    const { m, n, k, batch, transposeA, transposeB, pitchA, pitchB, pitchD, scale } = request;
    for (let product = 0; product < batch; product++) {
      const a = floatsAt(request.a + 4 * product * request.batchStrideA, transposeA ? k : m, pitchA);
      const b = floatsAt(request.b + 4 * product * request.batchStrideB, transposeB ? n : k, pitchB);
      const d = floatsAt(request.d + 4 * product * request.batchStrideD, m, pitchD);
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let sum = 0;
          for (let l = 0; l < k; l++) {
            sum +=
              a[transposeA ? l * pitchA + i : i * pitchA + l]! *
              b[transposeB ? j * pitchB + l : l * pitchB + j]!;
          }
          d[i * pitchD + j] = scale * sum;
        }
      }
    }
  }
}

function floatsAt(address: number, rows: number, pitch: number): Float32Array {
  return new Float32Array(ffi().view(address, 4 * rows * pitch));
}
