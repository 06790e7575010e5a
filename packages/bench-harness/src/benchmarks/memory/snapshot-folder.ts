import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names the folder that cells write their snapshots to; not part of what is asked, so not in a cell's key. */
export const SNAPSHOT_FOLDER_VARIABLE = 'ROOFLINE_MEMORY_SNAPSHOTS';

/** Writes a snapshot; returns its path next to the records, or null where no folder was asked for. */
export function writeSnapshot(name: string, bytes: () => Uint8Array): string | null {
  const folder = process.env[SNAPSHOT_FOLDER_VARIABLE];
  if (!folder) return null;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), bytes());
  return `snapshots/${name}`;
}
