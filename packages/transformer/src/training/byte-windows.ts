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

/** Options of `byteWindows`. */
export interface ByteWindowsOptions {
  /** Each step takes windows from other places of the text. */
  readonly step: number;
  readonly batch: number;
  readonly contextLength: number;
  readonly device?: Device | DeviceSpec;
}

/** Bytes from one window to the next: a prime, so that they come round to all places; see `placeOf`. */
const STRIDE = 31;

/**
 * A batch of windows of a text, byte by byte, and for each byte the one that follows it: int32 `ids` and `targets`,
 * both [batch, contextLength]. Throws a RooflineError (code RANGE) for a text that has no byte after a whole window.
 */
export function byteWindows(text: string, options: ByteWindowsOptions): { ids: Tensor; targets: Tensor } {
  checkText('byteWindows', 'the text', text);
  checkOptions('byteWindows', options, ['step', 'batch', 'contextLength', 'device']);
  const { step, batch, contextLength, device: spec = 'cpu' } = options;
  checkCount('byteWindows', 'step', step);
  checkCount('byteWindows', 'batch', batch, 1);
  checkCount('byteWindows', 'contextLength', contextLength, 1);
  checkDevice('byteWindows', spec);
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= contextLength) {
    throw new RooflineError(
      'RANGE',
      `byteWindows: windows of ${contextLength} need a longer text than ${bytes.length} bytes.`,
    );
  }
  const starts = Array.from({ length: batch }, (_, row) =>
    placeOf(step * batch + row, bytes.length - contextLength),
  );
  const tokens = (shift: number) => {
    const ids = new Int32Array(batch * contextLength);
    starts.forEach((start, row) =>
      ids.set(bytes.subarray(start + shift, start + shift + contextLength), row * contextLength),
    );
    return fromTypedArray(ids, [batch, contextLength], { device: spec });
  };
  return { ids: tokens(0), targets: tokens(1) };
}

/**
 * Where a window begins, of so many places. Where the stride divides their number, it alone would come to every 31st of
 * them, so that each round begins a place further.
 */
function placeOf(window: number, places: number): number {
  const distance = window * STRIDE;
  const rounds = places % STRIDE === 0 ? Math.floor(distance / places) : 0;
  return (distance + rounds) % places;
}
