import { HostMemory } from '@roofline/cuda/host';
import type { DType } from '../../../base/dtype.ts';

const slotBytes = 8;

/** The scalars of an op, at addresses that its graph reads in each run. */
export class ScalarMemory {
  readonly #memory: HostMemory;
  readonly #dtype: DType;

  constructor(dtype: DType, count: number) {
    this.#dtype = dtype;
    this.#memory = new HostMemory(count * slotBytes);
  }

  addressOf(index: number): number {
    return this.#memory.address + index * slotBytes;
  }

  write(values: readonly number[]): void {
    const { bytes, words, floats, doubles } = this.#memory;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (this.#dtype === 'float32') floats[2 * i] = value;
      else if (this.#dtype === 'float64') doubles[i] = value;
      else if (this.#dtype === 'int64') this.#memory.writeInt64(8 * i, value);
      else if (this.#dtype === 'int32') words[2 * i] = value;
      else bytes[8 * i] = Number(value !== 0);
    }
  }
}
