import type { Storage } from '../tensor/storage/storage.ts';
import type { ExternalWrites } from './external-writes.ts';
import type { Executable } from './executable/executable.ts';

/**
 * What a specialization holds of the device and of others' storages. It must not reference anything that the function closes
 * over: that may reference the compiled function itself, as a module that owns one does, which would then never be collected.
 */
export interface OwnedResources {
  readonly executable: Executable;
  readonly watched: ReadonlySet<Storage>;
  readonly writes: ExternalWrites;
  readonly storages: readonly Storage[];
}

const dropped = new FinalizationRegistry<OwnedResources>(free);

/** Frees what `owner` holds once it is garbage-collected. */
export function releaseWhenDropped(owner: object, resources: OwnedResources): void {
  dropped.register(owner, resources, owner);
}

/** Frees what `owner` holds, now. */
export function releaseResources(owner: object, resources: OwnedResources): void {
  dropped.unregister(owner);
  free(resources);
}

function free({ executable, watched, writes, storages }: OwnedResources): void {
  executable.dispose();
  for (const storage of watched) storage.unwatch();
  writes.dispose();
  for (const storage of storages) storage.release();
}
