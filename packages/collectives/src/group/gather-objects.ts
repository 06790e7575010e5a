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
  allGather(input: Tensor, output: Tensor): { readonly done: Promise<void>; wait(): void };
}

/** All ranks' values: first their lengths, then their bytes, filled up to the longest. */
export async function allGatherObject<T>(group: Gathering, value: T): Promise<T[]> {
  const bytes = serialized('allGatherObject', value);
  const gathered = async (values: Int32Array) => {
    const gathering = new WordGathering(group, values);
    try {
      await gathering.work.done;
      return gathering.words();
    } finally {
      gathering.dispose();
    }
  };
  const lengths = await gathered(Int32Array.of(bytes.length));
  return unpacked<T>(lengths, await gathered(padded(bytes, lengths)));
}

/** The same, which blocks this thread until all ranks have come. */
export function gatherObjectNow<T>(group: Gathering, value: T): T[] {
  const bytes = serialized('gatherObjectNow', value);
  const gathered = (values: Int32Array) => {
    const gathering = new WordGathering(group, values);
    try {
      gathering.work.wait();
      return gathering.words();
    } finally {
      gathering.dispose();
    }
  };
  const lengths = gathered(Int32Array.of(bytes.length));
  return unpacked<T>(lengths, gathered(padded(bytes, lengths)));
}

function serialized(op: string, value: unknown): Uint8Array {
  try {
    return serialize(value);
  } catch (cause) {
    throw new RooflineError(
      'ARGUMENT',
      `${op}: the value cannot travel: ${(cause as Error).message} Functions and symbols have no copy.`,
      { cause },
    );
  }
}

function padded(bytes: Uint8Array, lengths: Int32Array): Int32Array {
  const words = new Int32Array(Math.ceil(Math.max(...lengths) / wordBytes));
  new Uint8Array(words.buffer).set(bytes);
  return words;
}

function unpacked<T>(lengths: Int32Array, words: Int32Array): T[] {
  const all = new Uint8Array(words.buffer);
  const longest = all.length / lengths.length;
  return Array.from(
    lengths,
    (length, i) => deserialize(all.subarray(i * longest, i * longest + length)) as T,
  );
}

/** All ranks' words, under way. */
class WordGathering {
  readonly work: ReturnType<Gathering['allGather']>;
  readonly #input: Tensor;
  readonly #output: Tensor;

  constructor(group: Gathering, values: Int32Array) {
    const device = group.device ?? 'cpu';
    [this.#input, this.#output] = noGrad((): [Tensor, Tensor] => [
      keep(fromTypedArray(values, [values.length], { device })),
      keep(empty([group.size * values.length], { dtype: 'int32', device })),
    ]);
    this.work = group.allGather(this.#output, this.#input);
  }

  words(): Int32Array {
    return this.#output.toTypedArray() as Int32Array;
  }

  dispose(): void {
    this.#input.dispose();
    this.#output.dispose();
  }
}
