import { HostMemory } from '@roofline/cuda/host';

/** ncclConfig_t, as far as communicators here differ. */
export interface CommunicatorConfig {
  /** Whether calls return when they are done, or at once. */
  readonly blocking: boolean;
  /** Whether communicators that are split off share its resources, and its end. */
  readonly splitShare: boolean;
}

/** Of NCCL 2.18, the first with ncclCommSplit: later fields keep their defaults. */
const layout = { bytes: 48, magic: 0xcafebeef, version: 21_800 } as const;
/** Of NCCL 2.14, the first with a choice: later fields keep their defaults. */
const oldLayout = { bytes: 24, magic: 0xcafebeef, version: 21_400 } as const;
/** The value of fields that are not set. */
const undefinedInt = -(2 ** 31);

/** Writes an ncclConfig_t for the NCCL of this version, which must stay until the call that takes it has returned. */
export function configFor({ blocking, splitShare }: CommunicatorConfig, libraryVersion: number): HostMemory {
  const { bytes, magic, version } = libraryVersion < layout.version ? oldLayout : layout;
  const memory = new HostMemory(bytes);
  memory.writeInt64(0, bytes);
  memory.words[2] = magic;
  memory.words[3] = version;
  memory.words[4] = Number(blocking);
  if (version < layout.version) return memory;
  // cgaClusterSize, minCTAs, maxCTAs; netName is a null pointer; after splitShare comes padding.
  for (const word of [5, 6, 7, 11]) memory.words[word] = undefinedInt;
  memory.words[10] = Number(splitShare);
  return memory;
}
