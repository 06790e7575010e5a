import {
  type Device,
  type DeviceSpec,
  RooflineError,
  type Tensor,
  checkCount,
  checkDevice,
  checkOptions,
  checkText,
  fromTypedArray,
} from '@roofline/tensor-core';
import { permuted } from './permutation.ts';

/** Options of `byteWindows`. */
export interface ByteWindowsOptions {
  /** Which batch: those of steps 0, 1, 2... are different windows. It is all that a training needs to go on where it was. */
  readonly step: number;
  readonly batch: number;
  readonly contextLength: number;
  /** Which random order the windows have. Default 0. */
  readonly seed?: number;
  readonly device?: Device | DeviceSpec;
}

/**
 * A batch of windows of a text, byte by byte, and for each byte the one that follows it: int32 `ids` and `targets`,
 * both [batch, contextLength]. Windows begin at random bytes. Counted over the steps of one batch size, each byte at which a
 * window can begin comes once before any comes again, in another order. Throws a RooflineError (code RANGE) for a text that has
 * no byte after a whole window.
 */
export function byteWindows(text: string, options: ByteWindowsOptions): { ids: Tensor; targets: Tensor } {
  checkText('byteWindows', 'the text', text);
  checkOptions('byteWindows', options, ['step', 'batch', 'contextLength', 'seed', 'device']);
  const { step, batch, contextLength, seed = 0, device: spec = 'cpu' } = options;
  checkCount('byteWindows', 'step', step);
  checkCount('byteWindows', 'batch', batch, 1);
  checkCount('byteWindows', 'contextLength', contextLength, 1);
  checkCount('byteWindows', 'seed', seed);
  checkDevice('byteWindows', spec);
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= contextLength) {
    throw new RooflineError(
      'RANGE',
      `byteWindows: windows of ${contextLength} need a longer text than ${bytes.length} bytes.`,
    );
  }
  const places = bytes.length - contextLength;
  const starts = Array.from({ length: batch }, (_, row) => {
    const window = step * batch + row;
    return permuted(window % places, places, seed, Math.floor(window / places));
  });
  const tokens = (shift: number) => {
    const ids = new Int32Array(batch * contextLength);
    starts.forEach((start, row) =>
      ids.set(bytes.subarray(start + shift, start + shift + contextLength), row * contextLength),
    );
    return fromTypedArray(ids, [batch, contextLength], { device: spec });
  };
  return { ids: tokens(0), targets: tokens(1) };
}
