import type { MemoryView } from '@roofline/tensor-core';
import type { Backend } from './backend.ts';
import { type Members, errorOf } from './describe-call.ts';
import { noteHeard } from './unheard-failures.ts';
import type { Operand } from './operands.ts';
import { type CallTerms, PreparedCall, termsOf } from './prepared-call.ts';

/** A call of an op's lowering, on contiguous memory. */
export interface MemoryCall {
  readonly terms: CallTerms;
  /** Null where this rank gives nothing, or gets nothing. */
  readonly input: MemoryView | null;
  readonly output: MemoryView | null;
  /** Whether it becomes part of a CUDA graph. */
  readonly isCaptured: boolean;
  /** Told of the call once it has begun. */
  noteUnderWay(call: PreparedCall): void;
}

/** A call that becomes part of a CUDA graph, whose memory that keeps. Throws a CollectiveError. */
export function captureOnMemory(
  { terms, input, output }: MemoryCall,
  members: Members,
  backend: Backend,
): void {
  const call = {
    ...termsOf(terms),
    input: input?.address ?? 0,
    output: output?.address ?? 0,
    buffers: [],
  };
  const failure = backend.programs!.capture(call);
  if (!failure) return;
  noteHeard(members);
  throw errorOf(call.kind, failure, members, call.description, null)!;
}

/** A call that keeps its memory until it has ended, but whose readers wait for it by themselves. */
export function preparedOnMemory(call: MemoryCall, members: Members, backend: Backend): PreparedCall {
  const { terms, input, output } = call;
  const views = [input, output].filter((view) => view !== null);
  return new PreparedCall(
    {
      ...termsOf(terms),
      input: input?.address ?? 0,
      output: output?.address ?? 0,
      buffers: views.map(({ storage }) => storage.buffer),
    },
    // A GPU's allocator knows which streams use a block.
    backend.deviceType === 'cpu' ? views.map(keptMemory) : [],
    members,
  );
}

function keptMemory({ address, storage }: MemoryView): Operand {
  const { buffer } = storage;
  return { address, buffer, finish: () => {}, release: storage.keepMemory?.() ?? (() => {}) };
}
