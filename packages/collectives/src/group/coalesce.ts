import {
  DeviceError,
  type MemoryView,
  type Tensor,
  alias,
  contiguous,
  formatShape,
  keep,
  noGrad,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import { refuseAsync, refusePromise } from '@roofline/cuda/host';
import type { Backend } from './backend.ts';
import { applyInPlace } from './in-place-ops.ts';
import { noteUse } from './memory-under-way.ts';
import { regionOf } from './operands.ts';
import { type Call, type PreparedCall, startTogether } from './prepared-call.ts';
import { Work } from './work.ts';

/** Runs `calls`, which fills `collected`, and begins what is there as one; ends it all where `calls` throws. */
export function collectCalls(collected: readonly PreparedCall[], calls: () => void, backend: Backend): Work {
  refuseAsync('coalesce', calls);
  try {
    refusePromise('coalesce', calls());
  } catch (error) {
    for (const call of collected) call.end(error as Error);
    throw error;
  }
  return joined(collected, backend);
}

/** A call of a function that is being compiled, on handles of its own: its tensors may be disposed of before `coalesce` ends. */
export interface HeldCall {
  readonly call: Call;
  /** Throws a DeviceError where an op has written its memory since. */
  checkUnwritten(): void;
  release(): void;
}

/**
 * Holds the tensors of a call until `coalesce` ends. Throws the DeviceError of eager calls where another one works on memory of which
 * one of both has a copy, made before or brought back after it.
 */
export function heldCall(call: Call, order: Backend): HeldCall {
  const { kind, input = null, output = null } = call;
  const endUses: (() => void)[] = [];
  const handles: Tensor[] = [];
  const held = (x: Tensor, isWrite: boolean) => {
    endUses.push(noteUse(kind, x, { isWrite, order }));
    // A strided input travels as it is now.
    const handle = noGrad(() => keep(isWrite ? alias(x) : contiguous(x)));
    handles.push(handle);
    return handle;
  };
  const release = () => {
    for (const endUse of endUses) endUse();
    for (const handle of handles) handle.dispose();
  };
  try {
    const to = output && held(output, true);
    const from = input === output ? to : input && held(input, false);
    // A strided output is copied when coalesce() returns: nothing may be written between its elements either.
    const regions = handles.map((x) =>
      x.isContiguous ? regionOf(x) : { start: 0, end: x.storage.byteLength },
    );
    const versions = handles.map(({ storage }) => storage.version);
    const isWritten = ({ storage }: Tensor, i: number) => storage.writtenSince(versions[i]!, regions[i]!);
    const checkUnwritten = () => {
      const written = handles.find(isWritten);
      if (!written) return;
      throw new DeviceError(
        `coalesce: an op writes to ${formatShape(written.shape)} after ${kind}, which begins when coalesce() returns; write ` +
          'before it, or after coalesce().',
      );
    };
    return { call: { ...call, input: from, output: to }, checkUnwritten, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Throws a CompileError where an op, which runs at once, reads what a call in place is yet to write: eager calls keep their order. */
export function checkRead(op: string, input: MemoryView, collected: readonly HeldCall[]): void {
  const { start, end } = regionOf(input);
  const writesThere = ({ call: { output } }: HeldCall) => {
    if (!output?.isContiguous || output.storage !== input.storage) return false;
    const written = regionOf(output);
    return written.start < end && start < written.end;
  };
  if (collected.some(writesThere))
    currentTrace()?.refuse(
      `${op} reads what a call in place before it writes once coalesce() returns`,
      'Call it after coalesce(), or let it be in place too',
    );
}

/** Runs `calls`, which fills `collected`, and makes what is there one op of a function that is compiled. */
export function collectAsOp(group: object, collected: readonly HeldCall[], calls: () => void): Work {
  try {
    refuseAsync('coalesce', calls);
    refusePromise('coalesce', calls());
    for (const held of collected) held.checkUnwritten();
    applyInPlace(
      group,
      collected.map(({ call }) => call),
    );
    return Work.ofOp('coalesce');
  } finally {
    for (const held of collected) held.release();
  }
}

/** One Work over calls that begin together: it ends with the last of them, and fails as the first that did. */
function joined(calls: readonly PreparedCall[], backend: Backend): Work {
  const begin = (settle: (error: Error | null) => void) => {
    if (calls.length === 0) {
      settle(null);
      return { wait: () => {} };
    }
    let left = calls.length;
    let failure: Error | null = null;
    for (const call of calls) {
      call.onEnded = (error) => {
        failure ??= error;
        if (--left === 0) settle(failure);
      };
    }
    startTogether(calls, backend);
    return {
      wait() {
        for (const { work } of calls) work.wait();
      },
    };
  };
  return new Work('coalesce', begin, () => calls[0]?.noteHeard());
}
