import { tell } from '../cli/output.ts';
import type { MachineName } from './kinds.ts';
import { shippedMachine, type Machine } from './machine.ts';

/** The machine of these folders of records if there are any, else that of this name. Throws a UsageError for records that cannot be read. */
export async function chooseMachine(
  name: MachineName,
  folders: readonly string[] | undefined,
): Promise<Machine> {
  if (folders === undefined) return shippedMachine(name);
  // What reads records loads all that measures.
  const { readFolders } = await import('../records/results-folder.ts');
  const { machineOf } = await import('./machine-of-records.ts');
  return machineOf(readFolders(folders, tell).records);
}
