import type { Storage } from '../tensor/storage/storage.ts';
import type { ExternalWrites } from './external-writes.ts';
import type { ProgramRunner } from './executable/executable.ts';

/**
 * What a program has taken of the device and of others' storages. It leads to nothing that the function closes over: that may
 * lead to the compiled function itself, as a module does that has one, and would never be collected.
 */
export interface OwnedResources {
  readonly runner: ProgramRunner;
  readonly watched: ReadonlySet<Storage>;
  readonly writes: ExternalWrites;
  readonly storages: readonly Storage[];
}

const dropped = new FinalizationRegistry<OwnedResources>(free);

/** Sees to it that a program that is dropped frees what it holds. */
export function releaseWhenDropped(program: object, resources: OwnedResources): void {
  dropped.register(program, resources, program);
}

/** Frees what a program holds. */
export function releaseResources(program: object, resources: OwnedResources): void {
  dropped.unregister(program);
  free(resources);
}

function free({ runner, watched, writes, storages }: OwnedResources): void {
  runner.dispose();
  for (const storage of watched) storage.unwatch();
  writes.dispose();
  for (const storage of storages) storage.release();
}
