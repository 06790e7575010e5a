import { UsageError } from '../errors.ts';
import type { Execution } from '../execution/kinds.ts';
import type { DeviceDescription } from '../records/environment.ts';

/** Throws a UsageError for a way to run that the device does not have; its rows would be named after what did not run. */
export function checkExecutions(parameters: unknown, { type, label }: DeviceDescription): void {
  const { execution } = parameters as { execution?: readonly Execution[] };
  if (type === 'cuda' || !execution?.includes('autotuned')) return;
  throw new UsageError(
    `--execution autotuned times the algorithms that a GPU has for each matrix product, and the device is ${label}: ` +
      'take compiled there.',
  );
}
