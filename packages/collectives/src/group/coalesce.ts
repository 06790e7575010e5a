import { refuseAsync, refusePromise } from '@roofline/cuda/host';
import type { Backend } from './backend.ts';
import { applyInPlace } from './in-place-ops.ts';
import { noteUse } from './memory-under-way.ts';
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

/** Runs `calls`, which fills `collected`, and makes what is there one op of a function that is compiled. */
export function collectAsOp(
  group: object,
  collected: readonly Call[],
  calls: () => void,
  order: Backend,
): Work {
  refuseAsync('coalesce', calls);
  refusePromise('coalesce', calls());
  checkTogether(collected, order);
  applyInPlace(group, collected);
  return Work.ofOp('coalesce');
}

/** Throws the DeviceError of eager calls where one works on memory of which another one's copy is made before, or copied back after. */
function checkTogether(calls: readonly Call[], order: Backend): void {
  const endUses: (() => void)[] = [];
  try {
    for (const { kind, input, output } of calls) {
      if (output) endUses.push(noteUse(kind, output, { isWrite: true, order }));
      if (input && input !== output) endUses.push(noteUse(kind, input, { isWrite: false, order }));
    }
  } finally {
    for (const endUse of endUses) endUse();
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
