import { device } from '@roofline/tensor-core';
import { type CudaDevice, cudaDevice } from '@roofline/tensor-core/kernel-api';
import { type CudaStream, libraries, loadLibrary } from '@roofline/cuda';
import { HostMemory, declareFunctions } from '@roofline/cuda/host';

const prototypes = {
  cuDeviceGet: 'int cuDeviceGet(uintptr_t device, int ordinal)',
  cuDeviceCanAccessPeer: 'int cuDeviceCanAccessPeer(uintptr_t can, int device, int peer)',
  cuDevicePrimaryCtxRetain: 'int cuDevicePrimaryCtxRetain(uintptr_t context, int device)',
  cuCtxEnablePeerAccess: 'int cuCtxEnablePeerAccess(uintptr_t peer, uint flags)',
} as const;
/** CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED. */
const isEnabledAlready = 704;

/** What one copy moves, and how many run at once each way: one engine may not fill the link. */
const copyBytes = [2 ** 26, 2 ** 28] as const;
const streamCounts = [1, 2, 4] as const;
const copiesPerStream = 8;
const attempts = 5;

/**
 * Bytes a second each way of the link between the first two GPUs, both ways at once, as copy engines move them; the best
 * of several sizes and numbers of streams. Null where they cannot reach each other's memory.
 */
export function measureLink(): number | null {
  const pair = [cudaDevice(device('cuda:0')), cudaDevice(device('cuda:1'))] as const;
  return enablePeers(pair) ? bestRate(pair) : null;
}

/** Lets each of two GPUs reach the other's memory; false where they cannot. */
function enablePeers(pair: readonly [CudaDevice, CudaDevice]): boolean {
  const { handle, path } = loadLibrary(libraries.cuda);
  const functions = declareFunctions(handle, prototypes, (name) => new Error(`${path} has no ${name}.`));
  const out = new HostMemory(8);
  const handles = pair.map(({ index }) => {
    functions.cuDeviceGet(out.address, index);
    return out.readInt32(0);
  });
  return pair.every((gpu, i) => {
    const [own, peer] = [handles[i]!, handles[1 - i]!];
    functions.cuDeviceCanAccessPeer(out.address, own, peer);
    if (out.readInt32(0) !== 1) return false;
    functions.cuDevicePrimaryCtxRetain(out.address, peer);
    const peerContext = out.readUint64(0);
    gpu.makeCurrent();
    return [0, isEnabledAlready].includes(functions.cuCtxEnablePeerAccess(peerContext, 0));
  });
}

/** The best of all ways to copy between two GPUs, in bytes a second each way. */
export function bestRate(
  pair: readonly [CudaDevice, CudaDevice],
  sizes: readonly number[] = copyBytes,
): number {
  const streams = pair.map((gpu) =>
    Array.from({ length: Math.max(...streamCounts) }, () => gpu.createStream()),
  );
  const rates = sizes.flatMap((bytes) => {
    // One part of each GPU is read and another written.
    const blocks = pair.map((gpu) => ({ gpu, from: gpu.allocateBlock(bytes), to: gpu.allocateBlock(bytes) }));
    try {
      const ways = [0, 1].map((i) => ({
        gpu: pair[i]!,
        streams: streams[i]!,
        from: blocks[i]!.from.address,
        to: blocks[1 - i]!.to.address,
      }));
      return streamCounts.flatMap((count) =>
        Array.from({ length: attempts }, () => rateOf(ways, count, bytes)),
      );
    } finally {
      for (const { gpu, from, to } of blocks) {
        gpu.synchronize();
        gpu.freeBlock(from);
        gpu.freeBlock(to);
      }
    }
  });
  return Math.max(...rates);
}

interface Way {
  readonly gpu: CudaDevice;
  readonly streams: readonly CudaStream[];
  readonly from: number;
  readonly to: number;
}

/** Copies both ways on `count` streams each, each a part of the bytes, from one event to the end of all. */
function rateOf(ways: readonly Way[], count: number, bytes: number): number {
  const clock = ways[0]!.gpu.stream;
  const start = clock.recordEvent();
  const part = bytes / count;
  for (const { streams, from, to } of ways)
    for (const [i, stream] of streams.slice(0, count).entries()) {
      stream.waitFor(start);
      for (let copy = 0; copy < copiesPerStream; copy++) stream.copy(to + i * part, from + i * part, part);
      clock.waitFor(stream.recordEvent({ timing: false }));
    }
  const end = clock.recordEvent();
  return (bytes * copiesPerStream * 1000) / end.elapsedMs(start);
}
