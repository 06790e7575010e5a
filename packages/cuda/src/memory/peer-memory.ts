import { peerHandleBytes } from '../driver/driver.ts';
import type { GpuParts } from '../gpu-parts.ts';

// CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS of cuda.h.
const lazyPeerAccess = 1;

/** How another process of the same host finds memory of this one: an allocation, and where in it. */
export interface ExportedMemory {
  /** A CUipcMemHandle. */
  readonly handle: Uint8Array;
  readonly byteOffset: number;
}

/** Makes what lies at a device address known to other processes. Throws a DeviceError where the driver does not share it. */
export function exportMemory({ driver, makeCurrent }: GpuParts, address: number): ExportedMemory {
  makeCurrent();
  const { functions, result } = driver;
  const start = driver.handleFrom('cuMemGetAddressRange', (out) =>
    functions.cuMemGetAddressRange(out, out + 8, address),
  );
  driver.check(functions.cuIpcGetMemHandle(result.address, start), 'cuIpcGetMemHandle');
  return { handle: result.bytes.slice(0, peerHandleBytes), byteOffset: address - start };
}

/**
 * The address at which this process reaches an allocation of another one, until `closePeerMemory`. Throws a DeviceError
 * where the GPUs cannot reach each other, and for an allocation of this process.
 */
export function openPeerMemory({ driver, makeCurrent }: GpuParts, handle: Uint8Array): number {
  makeCurrent();
  const open = driver.functions.cuIpcOpenMemHandle as (...arguments_: readonly unknown[]) => number;
  return driver.handleFrom('cuIpcOpenMemHandle', (out) => open(out, { reserved: handle }, lazyPeerAccess));
}

/** Ends the use of what `openPeerMemory` gave, after all that was queued with it. Throws a DeviceError for another address. */
export function closePeerMemory({ driver, makeCurrent }: GpuParts, address: number): void {
  makeCurrent();
  driver.check(driver.functions.cuIpcCloseMemHandle(address), 'cuIpcCloseMemHandle');
}
