import { outOfMemory } from '../devices/cuda/driver/driver.ts';

// CUDA_ERROR_..., as far as an emulated GPU can fail.
export const invalidValue = 1;
export const invalidHandle = 400;
export const notSupported = 801;
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
export const captureUnsupported = 900;
// ..._UNMATCHED, _UNJOINED, _ISOLATION, and CUDA_ERROR_CAPTURED_EVENT
export const captureUnmatched = 903;
export const captureUnjoined = 904;
export const captureIsolation = 905;
export const capturedEvent = 907;

/** What they mean. */
export const results: Readonly<Record<number, string>> = {
  [invalidValue]: 'invalid value',
  [outOfMemory]: 'out of memory',
  [invalidHandle]: 'invalid handle',
  700: 'illegal address',
  716: 'misaligned address',
  719: 'threads of a block wait at different barriers',
  [notSupported]: 'not supported by the emulated GPU',
  [captureUnsupported]: 'not permitted while a stream is captured',
  [captureUnmatched]: 'the capture was not begun on this stream',
  [captureUnjoined]: 'a stream was taken into the capture and not joined with the one that began it',
  [captureIsolation]: 'a captured stream would depend on work outside of its capture',
  [capturedEvent]: 'the event was last recorded in a stream under capture',
};
