import type { Call, Operand, GraphStorage } from '../graph/graph.ts';
import { hasEffects } from '../graph/ordered-effects.ts';
import type { DType } from '../../base/dtype.ts';

/**
 * Moves each step of `isUpdate` that only writes in place, as an optimizer's updates do, to right after the last step that it
 * depends on: there its gradient is still in the processor's cache, and the gradient's memory serves later ones.
 */
export function hoistUpdates<S extends { readonly calls: readonly Call[] }>(
  steps: readonly S[],
  storages: readonly GraphStorage[],
  isUpdate: (step: S) => boolean,
): S[] {
  const placed: { readonly step: S; readonly uses: Uses }[] = [];
  for (const step of steps) {
    const uses = usesOf(step.calls, storages);
    let place = placed.length;
    if (isUpdate(step) && step.calls.every(onlyWritesInPlace))
      while (place > 0 && !mustKeepOrder(placed[place - 1]!.uses, uses)) place--;
    placed.splice(place, 0, { step, uses });
  }
  return placed.map(({ step }) => step);
}

function onlyWritesInPlace(call: Call): boolean {
  const { inputs, outputs } = call;
  return (
    outputs.length > 0 &&
    !hasEffects(call) &&
    outputs.every(({ storage }) => inputs.some((input) => input.storage === storage))
  );
}

interface Uses {
  readonly reads: Memory;
  readonly writes: Memory;
  /** Whether an error may end the run here, so that nothing that comes after it may be written before. */
  readonly mayThrow: boolean;
}

/** Storages, and what else may turn out to be the same memory in some run. */
interface Memory {
  readonly storages: ReadonlySet<number>;
  /** The dtypes of those that the graph does not make. */
  readonly given: ReadonlySet<DType>;
  /** The dtypes of those bound anew in each run: an argument may be a view of a parameter. */
  readonly givenAnew: ReadonlySet<DType>;
}

function usesOf(calls: readonly Call[], storages: readonly GraphStorage[]): Uses {
  const memoryOf = (operands: readonly Operand[]): Memory => {
    const numbers = new Set(operands.map(({ storage }) => storage));
    const dtypesOf = (isMeant: (kind: GraphStorage['source']['kind']) => boolean) =>
      new Set(
        [...numbers].flatMap((number) =>
          isMeant(storages[number]!.source.kind) ? [storages[number]!.dtype] : [],
        ),
      );
    return {
      storages: numbers,
      given: dtypesOf((kind) => kind !== 'made'),
      givenAnew: dtypesOf((kind) => kind === 'argument' || kind === 'gradient'),
    };
  };
  return {
    reads: memoryOf(calls.flatMap(({ inputs }) => inputs)),
    writes: memoryOf(calls.flatMap(({ outputs }) => outputs)),
    mayThrow: calls.some(mayThrow),
  };
}

/** Whether a call throws for some values, or for what happens elsewhere. */
export function mayThrow(call: Call): boolean {
  const { cpu } = call.op;
  return hasEffects(call) || (cpu.kind === 'host' && cpu.checksValues === true);
}

/** Whether `b`, which reads all that it writes, must stay after `a`. */
function mustKeepOrder(a: Uses, b: Uses): boolean {
  return a.mayThrow || meet(a.writes, b.reads) || meet(a.reads, b.writes);
}

function meet(a: Memory, b: Memory): boolean {
  return !(
    a.storages.isDisjointFrom(b.storages) &&
    a.givenAnew.isDisjointFrom(b.given) &&
    a.given.isDisjointFrom(b.givenAnew)
  );
}
