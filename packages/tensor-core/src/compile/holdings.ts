import type { Storage } from '../tensor/storage/storage.ts';
import type { GivenWrites } from './given-writes.ts';
import type { ProgramRunner } from './graph/program-runner.ts';

/**
 * What a program has taken of the device and of others' storages. It leads to nothing that the function closes over: that may
 * lead to the compiled function itself, as a module does that has one, and would never be collected.
 */
export interface Holdings {
  readonly runner: ProgramRunner;
  readonly watched: ReadonlySet<Storage>;
  readonly writes: GivenWrites;
  readonly storages: readonly Storage[];
}

const dropped = new FinalizationRegistry<Holdings>(free);

/** Sees to it that a program that is dropped frees what it holds. */
export function giveBackWithout(program: object, holdings: Holdings): void {
  dropped.register(program, holdings, program);
}

/** Frees what a program holds. */
export function giveBack(program: object, holdings: Holdings): void {
  dropped.unregister(program);
  free(holdings);
}

function free({ runner, watched, writes, storages }: Holdings): void {
  runner.dispose();
  for (const storage of watched) storage.unwatch();
  writes.dispose();
  for (const storage of storages) storage.release();
}
