import {
  type Block,
  type ColumnMajorLayout,
  type CublasLt,
  type LtMatmul,
  type LtMatmulDescription,
  computeTypes,
  dataTypes,
} from '@roofline/cuda/parts';
import type { CudaStream } from '@roofline/cuda';

const mostCandidates = 8;
const rounds = 5;
/** Another algorithm must take less than this fraction of the time of the heuristic's first: a smaller difference is noise. */
const margin = 0.98;
/** Filling so many times the L2 cache's size evicts the operands. */
const flushFactor = 2;
const patternBytes = 2 ** 16;

const elementBytes: ReadonlyMap<number, number> = new Map([
  [dataTypes.float32, 4],
  [dataTypes.float64, 8],
  [dataTypes.float16, 2],
  [dataTypes.bfloat16, 2],
]);

/** What timing needs of a device. */
export interface TimedDevice {
  readonly facts: { readonly l2Bytes: number };
  readonly stream: CudaStream;
  allocateBlock(byteLength: number): Block;
  freeBlock(block: Block): void;
  write(block: Block, byteOffset: number, bytes: Uint8Array): void;
}

/**
 * Of the heuristic's algorithms for a product, the fastest on the device's current stream, by the median of its times, each
 * with a flushed L2 cache. It is timed on operands of its own. Waits for the device. Throws an OutOfMemoryError if there is no
 * room for such operands.
 */
export function fastestAlgorithm(
  device: TimedDevice,
  library: CublasLt,
  description: LtMatmulDescription,
): LtMatmul {
  const candidates = library.candidates(description, mostCandidates);
  if (candidates.length === 1) return candidates[0]!;
  const medians = timesOf(device, library, description, candidates).map(median);
  const fastest = medians.indexOf(Math.min(...medians));
  return candidates[medians[fastest]! < margin * medians[0]! ? fastest : 0]!;
}

/** Milliseconds of each candidate's rounds. Candidates take turns, so that what slows the device slows all of them. */
function timesOf(
  device: TimedDevice,
  library: CublasLt,
  { a, b, d, computeType }: LtMatmulDescription,
  candidates: readonly LtMatmul[],
): number[][] {
  const flushBytes = flushFactor * device.facts.l2Bytes;
  const workspaceBytes = Math.max(...candidates.map((candidate) => candidate.workspaceBytes));
  const factors = { alpha: 1, beta: 0, isDouble: computeType === computeTypes.float64 };
  const { stream } = device;
  const sizes = [bytesOf(a), bytesOf(b), bytesOf(d), workspaceBytes, flushBytes];
  return withBlocks(device, sizes, (blocks) => {
    fillWithNumbers(device, a, blocks[0]!);
    fillWithNumbers(device, b, blocks[1]!);
    const [left, right, result, workspace, flushed] = blocks.map(({ address }) => address);
    const addresses = { a: left!, b: right!, c: result!, d: result! };
    const time = (candidate: LtMatmul) => {
      // Keeps the device busy while the host queues the product.
      stream.fill(flushed!, 0, flushBytes);
      const start = stream.recordEvent();
      library.run(candidate, addresses, factors, workspace!, stream.handle);
      return { start, end: stream.recordEvent() };
    };
    // The first round loads kernels.
    const events = Array.from({ length: 1 + rounds }, () => candidates.map(time)).slice(1);
    return candidates.map((_, i) => events.map((round) => round[i]!.end.elapsedMs(round[i]!.start)));
  });
}

/** Runs `fn` with memory of these sizes, which is then freed. */
function withBlocks<T>(device: TimedDevice, sizes: readonly number[], fn: (blocks: Block[]) => T): T {
  const blocks: Block[] = [];
  try {
    for (const size of sizes) blocks.push(device.allocateBlock(size));
    return fn(blocks);
  } finally {
    for (const block of blocks) device.freeBlock(block);
  }
}

function bytesOf({ dataType, rows, columns, pitch, batch, batchStride }: ColumnMajorLayout): number {
  return ((batch - 1) * batchStride + (columns - 1) * pitch + rows) * elementBytes.get(dataType)!;
}

/** Small numbers of both signs: with only zeros a product draws less power and runs faster. */
function fillWithNumbers(device: TimedDevice, layout: ColumnMajorLayout, block: Block): void {
  const byteLength = bytesOf(layout);
  const pattern = new Uint8Array(Math.min(byteLength, patternBytes));
  const width = elementBytes.get(layout.dataType)!;
  let state = 1;
  pattern.forEach((_, i) => {
    // Numerical Recipes' linear congruential generator.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const random = state >>> 24;
    // An element's last byte is its sign and most of its exponent: that of a number below 2, in every dtype.
    pattern[i] = i % width === width - 1 ? 0x3c | (random & 0x80) : random;
  });
  device.write(block, 0, pattern);
  const { address } = block;
  for (let filled = pattern.length; filled < byteLength; filled *= 2)
    device.stream.copy(address + filled, address, Math.min(filled, byteLength - filled));
}

function median(values: readonly number[]): number {
  return values.toSorted((x, y) => x - y)[values.length >> 1]!;
}
