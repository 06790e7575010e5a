import { outOfMemory } from '../driver/driver.ts';

// CUDA_ERROR_..., as far as an emulated GPU can fail.
export const invalidValue = 1;
export const invalidHandle = 400;
export const notFound = 500;
export const notSupported = 801;
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
export const captureUnsupported = 900;
// CUDA_ERROR_STREAM_CAPTURE_ISOLATION
export const captureIsolation = 905;

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
  [captureIsolation]: 'a stream that is captured would wait for what is not',
};
