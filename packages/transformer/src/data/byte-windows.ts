import {
  type Device,
  type DeviceSpec,
  RooflineError,
  checkCount,
  checkDevice,
  checkOptions,
  checkText,
} from '@roofline/tensor-core';
import { byteTokens } from './token-source.ts';
import { type TokenWindows, windowStarts, windowsAt } from './token-windows.ts';

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
 * no byte after a whole window. A `TokenLoader` reads files as well, and keeps count of the steps.
 */
export function byteWindows(text: string, options: ByteWindowsOptions): TokenWindows {
  checkText('byteWindows', 'the text', text);
  checkOptions('byteWindows', options, ['step', 'batch', 'contextLength', 'seed', 'device']);
  const { step, batch, contextLength, seed = 0, device: spec = 'cpu' } = options;
  checkCount('byteWindows', 'step', step);
  checkCount('byteWindows', 'batch', batch, 1);
  checkCount('byteWindows', 'contextLength', contextLength, 1);
  checkCount('byteWindows', 'seed', seed);
  checkDevice('byteWindows', spec);
  const source = byteTokens(text);
  const places = source.length - contextLength;
  if (places < 1) {
    throw new RooflineError(
      'RANGE',
      `byteWindows: windows of ${contextLength} need a longer text than ${source.length} bytes.`,
    );
  }
  return windowsAt(source, windowStarts(step * batch, batch, { places, seed }), contextLength, spec);
}
