import {
  type ExportedMemory,
  closePeerMemory,
  exportMemory,
  haveNvlink,
  openPeerMemory,
} from '@roofline/cuda/parts';
import { byteSize } from '@roofline/tensor-core';
import type { CudaDevice } from '@roofline/tensor-core/kernel-api';
import { type CudaStream, kernelVariants, packageKernels } from '@roofline/cuda';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { BackendCall, SharedMemory, SymmetricMemory } from '../group/backend.ts';
import type { CommunicatorState } from './communicator-state.ts';

// These mirror kernels/two_shot_all_reduce.cu.
const threads = 512;
const maxRanks = 8;
const vectorElements = 4;
const elementBytes = 4;
/** So few that what runs beside an all-reduce hardly notices; on an H200 as many fill a link to two thirds. */
const blocks = 8;

const kernel = kernelVariants(
  packageKernels(import.meta.url)('two_shot_all_reduce.cu'),
  'two_shot_all_reduce',
  {
    ...{ ranks: 'struct', rank: 'int32', size: 'int32', vectors: 'int64', scale: 'float32' },
    ...{ epochs: 'pointer', ended: 'pointer' },
  },
);
const spec = kernel({});

/** Memory that a rank lets the others reach. */
interface Offer {
  readonly host: string;
  readonly gpu: string;
  /** Blocks wait for those of the same number. */
  readonly blocks: number;
  readonly memory: readonly { readonly handle: string; readonly byteOffset: number }[];
}

/** What this rank gets of a root by a broadcast. */
interface Copy {
  readonly root: number;
  readonly to: number;
  readonly from: number;
  readonly byteLength: number;
}

/** Memory of one tensor on all ranks: where this process reaches it. */
interface Region {
  readonly memory: SharedMemory;
  /** By rank. */
  readonly addresses: readonly number[];
}

export interface NvlinkMemoryParts {
  readonly device: CudaDevice;
  readonly rank: number;
  readonly size: number;
  readonly state: CommunicatorState;
}

/**
 * Memory of all ranks that each of them loads and stores directly, over NVLink (as torch.distributed._symmetric_memory):
 * tensors that lie there are reduced by one kernel of a few blocks, where NCCL's take a fifth of an H200's multiprocessors
 * away from what runs beside them. Ranks of one host, each with a GPU of its own, have it; others reduce by NCCL.
 */
export class NvlinkMemory implements SymmetricMemory {
  readonly #parts: NvlinkMemoryParts;
  /** Of each launch: all of them run at once. */
  readonly #blocks: number;
  /** Of what is offered first: where blocks of all ranks count their arrivals, and after that this rank's epochs. */
  readonly #arrivals: number;
  readonly #arrivalsOfRanks: number[] = [];
  /** By the address of this rank's tensor. */
  readonly #regions = new Map<number, Region>();
  /** Addresses of other ranks' allocations, by rank and handle. Graphs have them: they stay until the group ends. */
  readonly #opened = new Map<string, number>();

  constructor(parts: NvlinkMemoryParts) {
    this.#parts = parts;
    this.#blocks = Math.max(1, Math.min(blocks, parts.device.parts.facts.multiprocessors >> 4));
    const { memory } = parts.device.parts;
    this.#arrivals = memory.allocatePermanent(4 * blocks * (maxRanks + 1));
    // Lives as long as the process: the watchdog's thread may write there at any time.
    parts.state.noteEndedWord(parts.device.allocatePinned(4).address);
    // Loaded now, since a first launch may be captured.
    parts.device.kernel(spec);
  }

  /** How many multiprocessors calls on it take. */
  get multiprocessors(): number {
    return this.#regions.size > 0 ? this.#blocks : 0;
  }

  /** What other ranks must know to reach these addresses; null where this rank shares nothing. */
  offer(addresses: readonly number[]): Offer | null {
    const { device, size } = this.#parts;
    if (size > maxRanks) return null;
    try {
      const all = [this.#arrivals, ...addresses].map((address) => exportMemory(device.parts, address));
      const gpu = device.parts.facts.pciBusId;
      return { host: hostName(), gpu, blocks: this.#blocks, memory: all.map(described) };
    } catch {
      // Such as memory of a driver, or in a container, that shares none.
      return null;
    }
  }

  /** Opens what all ranks offer; gives the addresses of each, or null where one of them is out of reach. */
  open(offers: readonly (Offer | null)[]): (readonly number[])[] | null {
    const { rank } = this.#parts;
    const own = offers[rank];
    try {
      if (!own || !areThere(offers) || !offers.every((offer) => canReach(own, offer))) return null;
      return offers.map(({ memory }, peer) =>
        memory.map(({ handle, byteOffset }) => this.#addressOf(peer, handle) + byteOffset),
      );
    } catch {
      // NVML is missing, or the driver does not let this process in.
      return null;
    }
  }

  /** Lets calls on these tensors, which all ranks opened, work in the memory of all. */
  add(tensors: readonly SharedMemory[], opened: readonly (readonly number[])[]): void {
    this.#arrivalsOfRanks.splice(0, Infinity, ...opened.map(([arrivals]) => arrivals!));
    this.#arrivalsOfRanks[this.#parts.rank] = this.#arrivals;
    for (const [address, { memory }] of this.#regions) if (!memory.isHere()) this.#regions.delete(address);
    tensors.forEach((memory, i) => {
      const { address } = memory;
      const addresses = opened.map((of) => of[i + 1]!);
      addresses[this.#parts.rank] = address;
      this.#regions.set(address, { memory, addresses });
    });
  }

  /**
   * What queues calls on `stream`; null where they are not one sum of float32, or several broadcasts, of such memory. Of a broadcast
   * alone the waiting would take longer than the copy.
   */
  launchOf(calls: readonly BackendCall[], stream: CudaStream): (() => void) | null {
    const [first] = calls;
    if (calls.length === 1 && first!.kind === 'allReduce') return this.#allReduce(first!, stream);
    if (calls.length === 1) return null;
    const copies = calls.map((call) => this.#copyOf(call));
    if (copies.includes(null)) return null;
    return () => {
      // Nobody reads before all are ready, or writes before all have read.
      this.#launch(stream, [], 0, 1);
      for (const copy of inTurns(copies as Copy[], this.#parts))
        stream.copy(copy.to, copy.from, copy.byteLength);
      this.#launch(stream, [], 0, 1);
    };
  }

  #allReduce(
    { dtype, reduction, input, output, count }: BackendCall,
    stream: CudaStream,
  ): (() => void) | null {
    const region = this.#regionAt(output, count * elementBytes);
    const reduces = dtype === 'float32' && (reduction === 'sum' || reduction === 'average');
    if (!region || !reduces || input !== output || count % vectorElements !== 0) return null;
    const scale = reduction === 'average' ? 1 / this.#parts.size : 1;
    return () => this.#launch(stream, region.addresses, count / vectorElements, scale);
  }

  /** Where this rank finds what a broadcast brings it. */
  #copyOf({ kind, dtype, root, input, output, count }: BackendCall): Copy | null {
    if (kind !== 'broadcast') return null;
    const to = output || input;
    const byteLength = count * byteSize(dtype);
    const region = this.#regionAt(to, byteLength);
    return region && { root, to, from: region.addresses[root]!, byteLength };
  }

  /** Null for other memory, a part of it, and what has taken the place of memory that is gone. */
  #regionAt(address: number, byteLength: number): Region | null {
    const region = this.#regions.get(address);
    if (!region?.memory.isHere()) return null;
    return region.memory.byteLength === byteLength ? region : null;
  }

  /** Without vectors, ranks wait for each other alone. */
  #launch(stream: CudaStream, addresses: readonly number[], vectors: number, scale: number): void {
    const { device, rank, size, state } = this.#parts;
    const arguments_ = kernel.byName({
      ...{ ranks: this.#ranks(addresses), rank, size, vectors, scale },
      epochs: this.#arrivals + 4 * blocks * maxRanks,
      ended: state.endedWord,
    });
    device.onStream(stream, () => device.kernel(spec).launch([this.#blocks, 1, 1], threads, 0, arguments_));
  }

  /** struct Ranks. */
  #ranks(addresses: readonly number[]): Uint8Array {
    const words = new BigUint64Array(2 * maxRanks);
    addresses.forEach((address, i) => (words[i] = BigInt(address)));
    this.#arrivalsOfRanks.forEach((address, i) => (words[maxRanks + i] = BigInt(address)));
    return new Uint8Array(words.buffer);
  }

  #addressOf(peer: number, handle: string): number {
    if (peer === this.#parts.rank) return 0;
    const key = `${peer} ${handle}`;
    let address = this.#opened.get(key);
    if (address === undefined) {
      address = openPeerMemory(this.#parts.device.parts, Buffer.from(handle, 'base64'));
      this.#opened.set(key, address);
    }
    return address;
  }

  /** Once no more calls begin, and no graph is left. Throws a DeviceError where a kernel has failed: then what is open stays. */
  close(): void {
    const { device } = this.#parts;
    this.#regions.clear();
    if (this.#opened.size === 0) return;
    // Those of a group that has ended may still be on their way out.
    device.synchronize();
    for (const address of this.#opened.values()) closePeerMemory(device.parts, address);
    this.#opened.clear();
  }
}

function areThere(offers: readonly (Offer | null)[]): offers is readonly Offer[] {
  return !offers.includes(null);
}

function canReach(own: Offer, other: Offer): boolean {
  return own.host === other.host && own.blocks === other.blocks && haveNvlink(own.gpu, other.gpu);
}

function described({ handle, byteOffset }: ExportedMemory): Offer['memory'][number] {
  return { handle: Buffer.from(handle).toString('base64'), byteOffset };
}

/** One for each start of each machine: names of hosts may be alike. */
function hostName(): string {
  return `${hostname()} ${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`;
}

/** Without this rank's own, from the next rank on: all read from one at a time, each from another. */
function inTurns(copies: readonly Copy[], { rank, size }: NvlinkMemoryParts): Copy[] {
  const turnOf = ({ root }: Copy) => (root - rank + size) % size;
  return copies.filter(({ root }) => root !== rank).toSorted((a, b) => turnOf(a) - turnOf(b));
}
