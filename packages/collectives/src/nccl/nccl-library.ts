import { RooflineError } from '@roofline/tensor-core';
import { HostMemory, type NativeFunctions, declareFunctions, ffi } from '@roofline/cuda/host';
import { libraries, loadLibrary } from '@roofline/cuda';

// Communicators, streams and addresses are numbers; results arrive through addresses of host memory.
const prototypes = {
  ncclGetVersion: 'int ncclGetVersion(uintptr_t version)',
  ncclGetUniqueId: 'int ncclGetUniqueId(uintptr_t id)',
  ncclCommInitRankConfig:
    'int ncclCommInitRankConfig(uintptr_t comm, int ranks, ncclUniqueId id, int rank, uintptr_t config)',
  ncclCommSplit: 'int ncclCommSplit(uintptr_t comm, int color, int key, uintptr_t newcomm, uintptr_t config)',
  ncclCommGetAsyncError: 'int ncclCommGetAsyncError(uintptr_t comm, uintptr_t result)',
  ncclCommAbort: 'int ncclCommAbort(uintptr_t comm)',
  ncclGroupStart: 'int ncclGroupStart()',
  ncclGroupEnd: 'int ncclGroupEnd()',
  ncclAllReduce:
    'int ncclAllReduce(uintptr_t in, uintptr_t out, size_t count, int dtype, int op, uintptr_t comm, uintptr_t stream)',
  ncclBroadcast:
    'int ncclBroadcast(uintptr_t in, uintptr_t out, size_t count, int dtype, int root, uintptr_t comm, uintptr_t stream)',
  ncclReduce:
    'int ncclReduce(uintptr_t in, uintptr_t out, size_t count, int dtype, int op, int root, uintptr_t comm, ' +
    'uintptr_t stream)',
  ncclAllGather:
    'int ncclAllGather(uintptr_t in, uintptr_t out, size_t count, int dtype, uintptr_t comm, uintptr_t stream)',
  ncclReduceScatter:
    'int ncclReduceScatter(uintptr_t in, uintptr_t out, size_t count, int dtype, int op, uintptr_t comm, ' +
    'uintptr_t stream)',
  ncclSend: 'int ncclSend(uintptr_t in, size_t count, int dtype, int peer, uintptr_t comm, uintptr_t stream)',
  ncclRecv:
    'int ncclRecv(uintptr_t out, size_t count, int dtype, int peer, uintptr_t comm, uintptr_t stream)',
} as const;

export type NcclFunctions = NativeFunctions<typeof prototypes>;

export interface NcclLibrary {
  readonly functions: NcclFunctions;
  /** Where it was found. */
  readonly path: string;
  /** Such as 2.30.7. */
  readonly version: string;
  /** Such as 23007. */
  readonly versionNumber: number;
  /** What an ncclResult_t means, and the library's own words on what went wrong last. */
  describe(result: number, communicator: number): string;
}

/** The first version whose communicators can be made non-blocking. */
const oldestVersion = 21_400;
export const uniqueIdBytes = 128;

let loaded: NcclLibrary | null = null;

/**
 * Loads NCCL. Throws a LibraryNotFoundError that says how to get it, and a RooflineError (code NCCL) where it is older
 * than 2.14.
 */
export function ncclLibrary(): NcclLibrary {
  if (loaded) return loaded;
  const { handle, path } = loadLibrary(libraries.nccl);
  const tooOld = (what: string) =>
    new RooflineError('NCCL', `${path} ${what}; NCCL 2.14 or newer is needed. ${libraries.nccl.remedy}`);
  // Passed by value.
  ffi().struct('ncclUniqueId', { internal: ffi().array('uint8', uniqueIdBytes, 'Typed') });
  const functions = declareFunctions(handle, prototypes, (name) => tooOld(`has no ${name}`));
  const version = new HostMemory(4);
  functions.ncclGetVersion(version.address);
  const versionNumber = version.readInt32(0);
  if (versionNumber < oldestVersion) throw tooOld(`is NCCL ${formatVersion(versionNumber)}`);
  const meaning = handle.func('const char *ncclGetErrorString(int result)') as (result: number) => string;
  const lastError = handle.func('const char *ncclGetLastError(uintptr_t comm)') as (
    communicator: number,
  ) => string | null;
  const describe = (result: number, communicator: number) =>
    [meaning(result), lastError(communicator)?.trim()].filter(Boolean).join(': ');
  loaded = { functions, path, version: formatVersion(versionNumber), versionNumber, describe };
  return loaded;
}

/** 2.30.7 for 23007; numbers had one digit less until 2.8. */
function formatVersion(version: number): string {
  const unit = version < 10_000 ? 1000 : 10_000;
  return [Math.floor(version / unit), Math.floor((version % unit) / 100), version % 100].join('.');
}
