import { isMainThread } from 'node:worker_threads';
import { ffi } from '@roofline/cuda/host';

/**
 * Keeps ONNX Runtime's telemetry off, whatever the environment says. Its library for Linux starts an uploader at first use,
 * unless ORT_DISABLE_TELEMETRY is 1 by then: call this before the library is loaded.
 */
export function disableTelemetry(): void {
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  // In a worker process.env is a copy, which native code does not see.
  if (isMainThread || process.platform === 'win32') return;
  ffi().load(null).func('int setenv(const char *, const char *, int)')('ORT_DISABLE_TELEMETRY', '1', 1);
}
