import {
  DeviceError,
  LibraryNotFoundError,
  type NativeFunctions,
  declareFunctions,
} from '@roofline/cuda/host';
import { onRange } from '../../tensor/ranges/range.ts';
import { type LibraryDescription, loadLibrary } from '@roofline/cuda';

const prototypes = {
  nvtxRangePushA: 'int nvtxRangePushA(const char *name)',
  nvtxRangePop: 'int nvtxRangePop()',
} as const;

const library: LibraryDescription = {
  name: 'libnvtx',
  files: ['libnvtx3interop.so.1', 'libnvtx3interop.so', 'libnvToolsExt.so.1', 'libnvToolsExt.so'],
  remedy: '`pip install nvidia-nvtx` brings it, so that Nsight shows the ranges.',
};

/** Nsight's tools set these variables to the library that listens, in the processes that they start. */
export function isNsightListening(environment: NodeJS.ProcessEnv): boolean {
  return Boolean(environment['NVTX_INJECTION64_PATH'] || environment['NVTX_INJECTION32_PATH']);
}

let started = false;

/**
 * Reports every range to Nsight from now on, if this process runs under it. Warns if Nsight is there but the library that
 * reports to it is missing.
 */
export function startNvtx(): void {
  if (started || !isNsightListening(process.env)) return;
  started = true;
  try {
    emitRanges(loadNvtx());
  } catch (error) {
    if (!(error instanceof LibraryNotFoundError)) throw error;
    process.emitWarning(`Nsight will not see the ranges: ${error.message}`);
  }
}

/** Emits an NVTX range for every range; returns a function that ends it. */
export function emitRanges(nvtx: NativeFunctions<typeof prototypes>): () => void {
  return onRange({
    enter: (name) => void nvtx.nvtxRangePushA(name),
    exit: () => void nvtx.nvtxRangePop(),
  });
}

function loadNvtx(): NativeFunctions<typeof prototypes> {
  const { handle, path } = loadLibrary(library);
  return declareFunctions(handle, prototypes, (name) => new DeviceError(`${path} has no ${name}.`));
}
