import { ffi } from '@roofline/cuda/host';
import type { Backend, BackendCall, PendingCall, RunningCall } from '../../src/group/backend.ts';
import { ProcessGroup } from '../../src/group/process-group.ts';

const memcpy = ffi()
  .load('libc.so.6')
  .func('uintptr_t memcpy(uintptr_t to, uintptr_t from, size_t byteLength)');
const elementBytes: Readonly<Record<string, number>> = { float32: 4, int32: 4 };

/**
 * Two ranks of one process, for tests without Gloo: a call moves its data once both have made it. A rank that waits for
 * the other's lets it run: `meanwhile` is called.
 */
export class LinkedRanks {
  readonly groups: readonly ProcessGroup[];
  /** What the other rank does while this one waits. */
  meanwhile: () => void = () => {};
  readonly #waiting: PendingCall[][] = [[], []];

  constructor() {
    this.groups = [0, 1].map((rank) => {
      const none = () => Promise.reject(new Error('linked ranks make no groups'));
      return new ProcessGroup({ ranks: [4, 7], rank }, this.#backendOf(rank), none, () => {});
    });
  }

  #backendOf(rank: number): Backend {
    return {
      ...{
        name: 'linked',
        deviceType: 'cpu',
        device: null,
        ordersPairs: true,
        programs: null,
        symmetricMemory: null,
        multiprocessors: 0,
      },
      start: (calls: readonly PendingCall[]): RunningCall => {
        this.#waiting[rank]!.push(...calls);
        this.#settle();
        return {
          wait: () => {
            if (calls.some((call) => this.#waiting[rank]!.includes(call))) this.meanwhile();
            if (calls.some((call) => this.#waiting[rank]!.includes(call)))
              throw new Error(
                `rank ${rank} waits for ${calls[0]!.call.description}, which the other does not call`,
              );
          },
        };
      },
      close: () => {},
    };
  }

  #settle(): void {
    const [first, second] = this.#waiting as [PendingCall[], PendingCall[]];
    while (first.length > 0 && second.length > 0) {
      const both = [first.shift()!, second.shift()!];
      move(both.map(({ call }) => call));
      for (const each of both) each.onSettled({ status: 'done' });
    }
  }
}

function move(calls: readonly BackendCall[]): void {
  const [a, b] = calls as [BackendCall, BackendCall];
  if (a.description !== b.description)
    throw new Error(`ranks that differ: ${a.description} and ${b.description}`);
  const byteLength = a.count * elementBytes[a.dtype]!;
  if (a.kind === 'broadcast') memcpy(calls[1 - a.root]!.output, calls[a.root]!.input, byteLength);
  else if (a.kind === 'allGather')
    for (const { output } of calls)
      calls.forEach(({ input }, rank) => memcpy(output + rank * byteLength, input, byteLength));
  else if (a.kind === 'shift')
    for (const [rank, { output }] of calls.entries())
      memcpy(output, calls[(rank + a.root) % 2]!.input, byteLength);
  else if (a.kind === 'send' || a.kind === 'recv') {
    const [from, to] = a.kind === 'send' ? [a, b] : [b, a];
    memcpy(to.output, from.input, byteLength);
  } else throw new Error(`linked ranks have no ${a.kind}`);
}
