import { byteSize } from '@roofline/tensor-core';
import type { BackendCall } from '../group/backend.ts';
import { dataTypes, reductionOps } from './nccl-codes.ts';
import type { NcclFunctions } from './nccl-library.ts';

/** Where calls go. */
export interface NcclPlace {
  readonly rank: number;
  readonly size: number;
  readonly communicator: number;
  readonly stream: number;
  /** Device memory of some bytes, for a barrier. */
  readonly scratch: number;
}

type NcclCall = (functions: NcclFunctions) => number;

/** What a call of a group comes to; nothing where no rank has an element. */
export function ncclCallsOf(call: BackendCall, place: NcclPlace): NcclCall[] {
  const { rank, size, communicator, stream, scratch } = place;
  const { kind, input, output, count, root } = call;
  const dtype = dataTypes[call.dtype]!;
  const op = reductionOps[call.reduction];
  // A barrier is the sum of something that nothing reads.
  if (kind === 'barrier')
    return [(nccl) => nccl.ncclAllReduce(scratch, scratch, 1, dataTypes.int32!, 0, communicator, stream)];
  if (count === 0) return [];
  switch (kind) {
    case 'allReduce':
      return [(nccl) => nccl.ncclAllReduce(input, output, count, dtype, op, communicator, stream)];
    case 'broadcast':
      return [
        (nccl) => nccl.ncclBroadcast(input || output, output, count, dtype, root, communicator, stream),
      ];
    case 'reduce':
      return [
        (nccl) => nccl.ncclReduce(input, output || input, count, dtype, op, root, communicator, stream),
      ];
    case 'allGather':
      return [(nccl) => nccl.ncclAllGather(input, output, count, dtype, communicator, stream)];
    case 'reduceScatter':
      return [(nccl) => nccl.ncclReduceScatter(input, output, count, dtype, op, communicator, stream)];
    case 'send':
      return [(nccl) => nccl.ncclSend(input, count, dtype, root, communicator, stream)];
    case 'recv':
      return [(nccl) => nccl.ncclRecv(output, count, dtype, root, communicator, stream)];
    case 'allToAll':
      return [
        ...sends(call, place, input, everyone(place)),
        ...receives(call, place, output, everyone(place)),
      ];
    case 'gather':
      return [
        ...exchange('send', call, place, () => input, [root]),
        ...(rank === root ? receives(call, place, output, everyone(place)) : []),
      ];
    case 'scatter':
      return [
        ...(rank === root ? sends(call, place, input, everyone(place)) : []),
        ...exchange('recv', call, place, () => output, [root]),
      ];
    case 'shift':
      return [
        ...exchange('send', call, place, () => input, [(rank + root) % size]),
        ...exchange('recv', call, place, () => output, [(rank - root + size) % size]),
      ];
  }
}

function everyone({ size }: NcclPlace): number[] {
  return Array.from({ length: size }, (_, rank) => rank);
}

/** Piece i of what begins at `start` to rank i, and the other way round. */
function sends(call: BackendCall, place: NcclPlace, start: number, peers: readonly number[]): NcclCall[] {
  return exchange('send', call, place, (peer) => start + peer * pieceBytes(call), peers);
}

function receives(call: BackendCall, place: NcclPlace, start: number, peers: readonly number[]): NcclCall[] {
  return exchange('recv', call, place, (peer) => start + peer * pieceBytes(call), peers);
}

function exchange(
  way: 'send' | 'recv',
  { count, dtype }: BackendCall,
  { communicator, stream }: NcclPlace,
  addressFor: (peer: number) => number,
  peers: readonly number[],
): NcclCall[] {
  return peers.map(
    (peer) => (nccl) =>
      nccl[way === 'send' ? 'ncclSend' : 'ncclRecv'](
        addressFor(peer),
        count,
        dataTypes[dtype]!,
        peer,
        communicator,
        stream,
      ),
  );
}

function pieceBytes({ count, dtype }: BackendCall): number {
  return count * byteSize(dtype);
}
