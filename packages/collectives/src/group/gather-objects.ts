import {
  type Device,
  RooflineError,
  type Tensor,
  empty,
  fromTypedArray,
  keep,
  noGrad,
} from '@roofline/tensor-core';
import { deserialize, serialize } from 'node:v8';

const wordBytes = 4;

/** What this needs of a process group. */
interface Gathering {
  readonly size: number;
  /** Null for any. */
  readonly device: Device | null;
  allGather(input: Tensor, output: Tensor): { readonly done: Promise<void> };
}

/** All ranks' values: first their lengths, then their bytes, filled up to the longest. */
export async function allGatherObject<T>(group: Gathering, value: T): Promise<T[]> {
  const bytes = serialized(value);
  const lengths = await gathered(group, Int32Array.of(bytes.length));
  const words = Math.ceil(Math.max(...lengths) / wordBytes);
  const padded = new Int32Array(words);
  new Uint8Array(padded.buffer).set(bytes);
  const all = new Uint8Array((await gathered(group, padded)).buffer);
  return Array.from(lengths, (length, i) => {
    const start = i * words * wordBytes;
    return deserialize(all.subarray(start, start + length)) as T;
  });
}

function serialized(value: unknown): Uint8Array {
  try {
    return serialize(value);
  } catch (cause) {
    throw new RooflineError(
      'ARGUMENT',
      `allGatherObject: the value cannot travel: ${(cause as Error).message} Functions and symbols have no copy.`,
      { cause },
    );
  }
}

async function gathered(group: Gathering, values: Int32Array): Promise<Int32Array> {
  const device = group.device ?? 'cpu';
  const [input, output] = noGrad((): [Tensor, Tensor] => [
    keep(fromTypedArray(values, [values.length], { device })),
    keep(empty([group.size * values.length], { dtype: 'int32', device })),
  ]);
  try {
    await group.allGather(output, input).done;
    return output.toTypedArray() as Int32Array;
  } finally {
    input.dispose();
    output.dispose();
  }
}
