import { outOfMemory } from '../driver/driver.ts';

// CUDA_ERROR_..., as far as an emulated GPU can fail.
export const invalidValue = 1;
export const invalidHandle = 400;
export const notFound = 500;
export const notSupported = 801;
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
export const captureUnsupported = 900;
// CUDA_ERROR_STREAM_CAPTURE_MERGE, _UNMATCHED, _UNJOINED, _ISOLATION
export const captureMerge = 903;
export const captureUnmatched = 902;
export const captureUnjoined = 904;
export const captureIsolation = 905;
// CUDA_ERROR_CAPTURED_EVENT
export const capturedEvent = 907;

/** What they mean. */
export const results: Readonly<Record<number, string>> = {
  [invalidValue]: 'invalid value',
  [outOfMemory]: 'out of memory',
  [invalidHandle]: 'invalid handle',
  [notFound]: 'named symbol not found',
  700: 'illegal address',
  716: 'misaligned address',
  719: 'threads of a block wait at different barriers',
  [notSupported]: 'not supported by the emulated GPU',
  [captureUnsupported]: 'not permitted while a stream is captured',
  [captureUnmatched]: 'a capture ends on another stream than the one it began on',
  [captureMerge]: 'two captures would become one',
  [captureUnjoined]: 'a stream that joined the capture is not waited for at its end',
  [capturedEvent]: 'an event that a captured stream recorded has no time and no end',
  [captureIsolation]: 'a stream that is captured would wait for what is not',
};
