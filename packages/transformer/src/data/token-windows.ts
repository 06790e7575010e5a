import {
  type Device,
  type DeviceSpec,
  RooflineError,
  type Tensor,
  describeValue,
  fromTypedArray,
} from '@roofline/tensor-core';
import { permuted } from './permutation.ts';
import type { TokenSource } from './token-source.ts';

/** Windows of tokens, and for each token the one that follows it: both int32 [batch, contextLength]. */
export interface TokenWindows {
  readonly ids: Tensor;
  readonly targets: Tensor;
}

/** In which random order windows begin at places 0, 1... `places` - 1. */
export interface WindowOrder {
  readonly places: number;
  readonly seed: number;
}

/** Where `count` windows begin, the first of them number `first` of all that are drawn; each place comes once before any comes again. */
export function windowStarts(first: number, count: number, { places, seed }: WindowOrder): number[] {
  return Array.from({ length: count }, (_, row) => {
    const window = first + row;
    return permuted(window % places, places, seed, Math.floor(window / places));
  });
}

/** The windows that begin at `starts`, on a device. A GPU is given them by pinned memory, without a wait. */
export function windowsAt(
  source: TokenSource,
  starts: readonly number[],
  contextLength: number,
  device: Device | DeviceSpec,
): TokenWindows {
  const [ids, targets] = [0, 1].map(() => new Int32Array(starts.length * contextLength)) as [
    Int32Array<ArrayBuffer>,
    Int32Array<ArrayBuffer>,
  ];
  starts.forEach((start, row) => {
    const tokens = source.read(start, contextLength + 1);
    if (tokens?.length !== contextLength + 1) throw wrongTokens(source, start, contextLength + 1, tokens);
    checkVocabulary(source, tokens, start);
    for (let i = 0; i < contextLength; i++) {
      ids[row * contextLength + i] = tokens[i]!;
      targets[row * contextLength + i] = tokens[i + 1]!;
    }
  });
  const shape = [starts.length, contextLength];
  return { ids: fromTypedArray(ids, shape, { device }), targets: fromTypedArray(targets, shape, { device }) };
}

/** Int32 would hold other tokens of what are none, and a GPU would read those of another vocabulary from beyond the embeddings. */
function checkVocabulary(
  { name, vocabularySize }: TokenSource,
  tokens: ArrayLike<number>,
  start: number,
): void {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (Number.isInteger(token) && token >= 0 && token < vocabularySize) continue;
    throw new RooflineError(
      'RANGE',
      `TokenLoader: token ${start + i} of ${name} is ${describeValue(token)}, not one of 0 to ${vocabularySize - 1}; a source's ` +
        'vocabularySize is above all of its tokens.',
    );
  }
}

function wrongTokens({ name }: TokenSource, start: number, count: number, given: unknown): RooflineError {
  const what =
    ArrayBuffer.isView(given) || Array.isArray(given)
      ? `${(given as Uint8Array).length} tokens`
      : describeValue(given);
  return new RooflineError(
    'RANGE',
    `TokenLoader: read(${start}, ${count}) of ${name} gave ${what}; a source gives as many tokens as it is asked for.`,
  );
}
