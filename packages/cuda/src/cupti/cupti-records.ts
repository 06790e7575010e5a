/** Activity kinds, from CUpti_ActivityKind of cupti_activity.h. */
export const activityKinds = {
  memcpy: 1,
  memset: 2,
  driver: 4,
  runtime: 5,
  concurrentKernel: 10,
  peerMemcpy: 22,
} as const;

/** Work that ran on the GPU. Times are nanoseconds of CUPTI's clock since the base that the reader was given. */
export interface GpuActivity {
  readonly kind: 'kernel' | 'memcpy' | 'memset';
  /** A kernel's name as it was linked; else what moved, as Nsight Systems writes it. */
  readonly name: string;
  readonly startNs: number;
  readonly endNs: number;
  readonly device: number;
  readonly stream: number;
  /** Ties the activity to the API call that queued it. */
  readonly correlationId: number;
  /** Of what a CUDA graph ran: ids of one graph's nodes are in the order in which they were captured. Else 0. */
  readonly graphNodeId: number;
  /** Of copies and fills; null for kernels. */
  readonly byteLength: number | null;
  /** Of kernels: blocks of the grid, threads of a block. */
  readonly grid: readonly [number, number, number] | null;
  readonly block: readonly [number, number, number] | null;
}

/** A call of CUDA by the host. Times as those of activities. */
export interface ApiCall {
  readonly kind: 'api-call';
  readonly startNs: number;
  readonly endNs: number;
  readonly correlationId: number;
}

/** What a record of CUPTI's buffers says. */
export type ActivityRecord = GpuActivity | ApiCall;

/** What reading records needs besides their bytes. */
export interface RecordContext {
  /** The text of a C string in this process. */
  readonly textAt: (address: number) => string;
  /** Taken off each time, so that nanoseconds are exact in a number. */
  readonly baseNs: bigint;
}

// Byte offsets. The records are packed, aligned to 8, and every version of a structure (CUpti_ActivityKernel5 to 10,
// CUpti_ActivityMemcpy4 to 6, CUpti_ActivityMemcpyPtoP3 to 4, CUpti_ActivityMemset3 to 4, CUpti_ActivityAPI) only adds fields after those named here.
const kernelOffsets = {
  start: 16,
  end: 24,
  device: 40,
  stream: 48,
  grid: 52,
  block: 64,
  correlation: 92,
  name: 104,
  graphNode: 144,
} as const;
const transferOffsets = {
  copyKind: 4,
  bytes: 8,
  start: 16,
  end: 24,
  device: 32,
  stream: 40,
  correlation: 44,
  graphNode: 64,
} as const;
/** Of copies between GPUs, which name both of them before the correlation id. */
const peerCopyOffsets = { ...transferOffsets, correlation: 60, graphNode: 72 };
const apiOffsets = { start: 8, end: 16, correlation: 32 } as const;

// CUpti_ActivityMemcpyKind, as Nsight Systems names them.
const copyNames: Readonly<Record<number, string>> = {
  1: '[CUDA memcpy HtoD]',
  2: '[CUDA memcpy DtoH]',
  8: '[CUDA memcpy DtoD]',
  10: '[CUDA memcpy PtoP]',
};

/** Reads the record at `offset`; null for a kind that was not asked for. */
export function readActivityRecord(
  bytes: DataView,
  offset: number,
  context: RecordContext,
): ActivityRecord | null {
  const kind = bytes.getUint32(offset, true);
  if (kind === activityKinds.concurrentKernel) return readKernel(bytes, offset, context);
  if (kind === activityKinds.memcpy || kind === activityKinds.peerMemcpy || kind === activityKinds.memset)
    return readTransfer(bytes, offset, context, kind);
  if (kind !== activityKinds.driver && kind !== activityKinds.runtime) return null;
  const { baseNs } = context;
  return {
    kind: 'api-call',
    startNs: Number(bytes.getBigUint64(offset + apiOffsets.start, true) - baseNs),
    endNs: Number(bytes.getBigUint64(offset + apiOffsets.end, true) - baseNs),
    correlationId: bytes.getUint32(offset + apiOffsets.correlation, true),
  };
}

function readKernel(bytes: DataView, offset: number, { textAt, baseNs }: RecordContext): GpuActivity {
  const at = kernelOffsets;
  const triple = (start: number): [number, number, number] => [
    bytes.getInt32(start, true),
    bytes.getInt32(start + 4, true),
    bytes.getInt32(start + 8, true),
  ];
  return {
    kind: 'kernel',
    name: textAt(Number(bytes.getBigUint64(offset + at.name, true))),
    startNs: Number(bytes.getBigUint64(offset + at.start, true) - baseNs),
    endNs: Number(bytes.getBigUint64(offset + at.end, true) - baseNs),
    device: bytes.getUint32(offset + at.device, true),
    stream: bytes.getUint32(offset + at.stream, true),
    correlationId: bytes.getUint32(offset + at.correlation, true),
    graphNodeId: Number(bytes.getBigUint64(offset + at.graphNode, true)),
    byteLength: null,
    grid: triple(offset + at.grid),
    block: triple(offset + at.block),
  };
}

/** Copies and fills lie alike up to the correlation id. */
function readTransfer(bytes: DataView, offset: number, { baseNs }: RecordContext, kind: number): GpuActivity {
  const at = kind === activityKinds.peerMemcpy ? peerCopyOffsets : transferOffsets;
  const isCopy = kind !== activityKinds.memset;
  const copyKind = bytes.getUint8(offset + at.copyKind);
  return {
    kind: isCopy ? 'memcpy' : 'memset',
    name: isCopy ? (copyNames[copyKind] ?? '[CUDA memcpy]') : '[CUDA memset]',
    startNs: Number(bytes.getBigUint64(offset + at.start, true) - baseNs),
    endNs: Number(bytes.getBigUint64(offset + at.end, true) - baseNs),
    device: bytes.getUint32(offset + at.device, true),
    stream: bytes.getUint32(offset + at.stream, true),
    correlationId: bytes.getUint32(offset + at.correlation, true),
    graphNodeId: Number(bytes.getBigUint64(offset + at.graphNode, true)),
    byteLength: Number(bytes.getBigUint64(offset + at.bytes, true)),
    grid: null,
    block: null,
  };
}
