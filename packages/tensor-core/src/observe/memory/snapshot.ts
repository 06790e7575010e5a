import type { StackFrame } from './call-stack.ts';
import type { MemorySegment } from '@roofline/cuda/host';
import { type Picklable, pickle } from './pickle-writer.ts';
import { type Allocation, type MemoryEvent, type MemoryRecord, checkRecord } from './record.ts';

/**
 * A record as `snapshot.pickle`, the format of `torch.cuda.memory._snapshot()`, for `torch.cuda._memory_viz` and
 * https://pytorch.org/memory_viz. An allocation's op and ranges are frames above its calls.
 */
export function memorySnapshot(record: MemoryRecord): Uint8Array {
  checkRecord('memorySnapshot', record);
  const frames = new FrameLists();
  const device = Number(/:(\d+)$/.exec(record.device)?.[1] ?? 0);
  const live = new Map<number, Allocation>();
  for (const allocation of record.allocations) {
    if (allocation.endUs === null) live.set(allocation.address, allocation);
  }
  const trace = record.events.flatMap((event) => traceEntries(event, record.startedAtMs, frames));
  const traces = Array.from({ length: device + 1 }, (_, index) => (index === device ? trace : []));
  return pickle({
    segments: record.segments.map((segment) => describeSegment(segment, device, live, frames)),
    device_traces: traces,
    allocator_settings: {},
    external_annotations: [],
  });
}

function traceEntries(event: MemoryEvent, startedAtMs: number, frames: FrameLists): Picklable[] {
  if (event.action === 'enter') return [];
  const common = { stream: 0, time_us: Math.round(startedAtMs * 1000 + event.timeUs) };
  if (!('allocation' in event)) {
    const action = event.action === 'reserve' ? 'segment_alloc' : 'segment_free';
    const { address: addr, bytes: size, stack } = event;
    return [{ action, addr, size, frames: frames.of(stack), ...common }];
  }
  const { address: addr, requestedBytes: size } = event.allocation;
  // A free has the frames of what it frees, as in PyTorch if no calls of its own were recorded.
  const told = { addr, size, frames: frames.ofAllocation(event.allocation), ...common };
  if (event.action === 'allocate') return [{ action: 'alloc', ...told }];
  // One stream uses the memory in order, so a free is complete at once.
  return [
    { action: 'free_requested', ...told },
    { action: 'free_completed', ...told },
  ];
}

function describeSegment(
  { address, bytes, blocks }: MemorySegment,
  device: number,
  live: ReadonlyMap<number, Allocation>,
  frames: FrameLists,
): Picklable {
  const used = blocks.filter(({ requestedBytes }) => requestedBytes !== null);
  const allocated = used.reduce((sum, { size }) => sum + size, 0);
  return {
    device,
    address,
    total_size: bytes,
    allocated_size: allocated,
    active_size: allocated,
    requested_size: used.reduce((sum, { requestedBytes }) => sum + requestedBytes!, 0),
    stream: 0,
    segment_type: bytes <= 2 ** 21 ? 'small' : 'large',
    segment_pool_id: [0, 0],
    is_expandable: false,
    frames: [],
    blocks: blocks.map(({ address: start, size, requestedBytes }) => {
      const allocation = requestedBytes === null ? undefined : live.get(start);
      return {
        address: start,
        size,
        requested_size: requestedBytes ?? 0,
        state: requestedBytes === null ? 'inactive' : 'active_allocated',
        frames: allocation ? frames.ofAllocation(allocation) : [],
      };
    }),
  };
}

/** Lists of frames in Python's form; the same list for the same calls, so that the pickle holds it once. */
class FrameLists {
  readonly #byStack = new Map<readonly StackFrame[], Map<string, Picklable>>();

  of(stack: readonly StackFrame[], heading: readonly string[] = []): Picklable {
    const key = heading.join('\n');
    let lists = this.#byStack.get(stack);
    if (!lists) this.#byStack.set(stack, (lists = new Map()));
    let list = lists.get(key);
    if (!list) {
      list = [
        ...heading.map((name) => ({ name, filename: 'roofline', line: 0 })),
        ...stack.map(({ name, file, line }) => ({ name, filename: file, line })),
      ];
      lists.set(key, list);
    }
    return list;
  }

  ofAllocation({ stack, op, range, kind, startUs }: Allocation): Picklable {
    if (startUs === null) return this.of(stack, op === null ? [] : [op]);
    const what = `${op ?? 'tensor'}${kind === 'workspace' ? ' (workspace)' : ''}`;
    return this.of(stack, range.length === 0 ? [what] : [what, `range ${range.join(' > ')}`]);
  }
}
