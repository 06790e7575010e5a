import { DeviceError, checkObject } from '@roofline/cuda/host';
import { byteSize } from '../../base/dtype.ts';
import type { MemoryView } from '../../base/memory-view.ts';
import { CpuBuffer } from '../../onnx/buffer-pool.ts';

/** The bytes of a contiguous tensor on the CPU as a lowering sees it, to read or write. Throws a DeviceError for one on a GPU. */
export function hostBytes(view: MemoryView): Uint8Array {
  checkObject('hostBytes', 'the view', view);
  const { storage, offset, size, dtype } = view;
  const { buffer } = storage;
  if (!(buffer instanceof CpuBuffer))
    throw new DeviceError('hostBytes: the memory is on a GPU; use the context of its lowering.');
  const width = byteSize(dtype);
  return new Uint8Array(buffer.memory, buffer.byteOffset + offset * width, size * width);
}
