import type { MemoryView } from '@roofline/tensor-core';
import type { Backend } from './backend.ts';
import { type Members, errorOf } from './describe-call.ts';
import { noteHeard } from './unheard-failures.ts';
import { type Operand, regionOf } from './operands.ts';
import { type CallTerms, PreparedCall, termsOf } from './prepared-call.ts';

/** A call of an op's lowering, on contiguous memory. */
export interface MemoryCall {
  readonly terms: CallTerms;
  /** Null where this rank gives nothing, or gets nothing. */
  readonly input: MemoryView | null;
  readonly output: MemoryView | null;
  /** Whether it becomes part of a CUDA graph. */
  readonly isCaptured: boolean;
  /** Whether it writes a tensor that was there before, which may be written anew once the call has failed. */
  readonly isInPlace: boolean;
}

/** Calls that together become part of a CUDA graph, whose memory that keeps. Throws a CollectiveError. */
export function captureOnMemory(given: readonly MemoryCall[], members: Members, backend: Backend): void {
  const calls = given.map((call) => ({ ...termsOf(call.terms), ...addressesOf(call), buffers: [] }));
  const failure = backend.programs!.capture(calls);
  if (!failure) return;
  noteHeard(members);
  const { kind, description } = calls[0]!;
  throw errorOf(kind, failure, members, description, null)!;
}

/** A call that keeps its memory until it has ended, but whose readers wait for it by themselves. */
export function preparedOnMemory(call: MemoryCall, members: Members, backend: Backend): PreparedCall {
  const { input, output } = call;
  const views = [input, output].filter((view) => view !== null);
  return new PreparedCall(
    {
      ...termsOf(call.terms),
      ...addressesOf(call),
      buffers: views.map(({ storage }) => storage.buffer),
    },
    // A GPU's allocator knows which streams use a block.
    backend.deviceType === 'cpu' ? views.map(keptMemory) : [],
    members,
  );
}

/** The root's tensor is what a broadcast writes, to others. */
function addressesOf({ terms, input, output }: MemoryCall): {
  readonly input: number;
  readonly output: number;
} {
  const target = terms.kind === 'broadcast' ? (output ?? input) : output;
  return { input: input?.address ?? 0, output: target?.address ?? 0 };
}

function keptMemory({ address, storage }: MemoryView): Operand {
  const { buffer } = storage;
  return { address, buffer, finish: () => {}, release: storage.keepMemory?.() ?? (() => {}) };
}

/** The first reader of what a call writes waits for it and gets its error; so does the first writer of what it reads. */
export function noteUnderWay(call: PreparedCall, { input, output, isInPlace }: MemoryCall): void {
  let hasTold = false;
  output?.storage.noteUnderWay?.(() => {
    if (isInPlace && hasTold) return;
    hasTold = true;
    call.awaitResult();
  });
  if (input === null || input.storage === output?.storage) return;
  // Nobody can wait for a call that has yet to begin; what it is to send may not change meanwhile.
  const release = call.hasBegun ? null : input.storage.hold?.(regionOf(input), call.call.kind);
  call.onceBegun(() => {
    release?.();
    input.storage.noteUnderWay?.(() => {
      // What it reads is as it was, also where the call has failed: that is for the reader of its output.
      try {
        call.awaitResult();
      } catch {}
    });
  });
}
