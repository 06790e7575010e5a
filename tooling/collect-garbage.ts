import { setImmediate as nextTurn } from 'node:timers/promises';

/** Finalizers that have run: of all registries made since this file was loaded, which is why it sets up what it tests. */
let finalized = 0;

class CountingRegistry<T> extends FinalizationRegistry<T> {
  constructor(finalize: (held: T) => void) {
    super((held) => {
      finalized++;
      finalize(held);
    });
  }
}
globalThis.FinalizationRegistry = CountingRegistry;

let marked = 0;
const markers = new FinalizationRegistry<void>(() => void marked++);

/** Leaves an object for the next collection: once its finalizer has run, that has taken what was garbage before. */
function leaveMarker(): void {
  markers.register({}, undefined);
}

/** Turns of the event loop in which a finalizer must have run. */
const mostTurns = 100;
/** A target that was looked at through a WeakRef lives until its turn has ended. */
const leastCollections = 2;

/**
 * Collects garbage until a collection has given no finalizer anything to do: what one lets go of is collected next.
 * Needs --expose-gc. Throws where finalizers do not run.
 */
export async function collect(): Promise<void> {
  for (let collections = 1; ; collections++) {
    const [finalizedBefore, markedBefore] = [finalized, marked];
    leaveMarker();
    globalThis.gc!();
    const hasRun = () => marked > markedBefore;
    for (let turn = 0; !hasRun(); turn++) {
      if (turn === mostTurns) throw new Error('no finalizer ran after a collection');
      await nextTurn();
    }
    // Finalizers of other registries may come later.
    await nextTurn();
    const others = finalized - finalizedBefore - (marked - markedBefore);
    if (others === 0 && collections >= leastCollections) return;
  }
}
