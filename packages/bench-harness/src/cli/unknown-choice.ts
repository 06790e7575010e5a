import { nearestOf } from '@roofline/cuda/host';
import { UsageError } from '../errors.ts';

/** A UsageError that names what was given, the nearest choice, and all of them. */
export function unknownChoice(kind: string, given: string, choices: readonly string[]): UsageError {
  const suggestion = nearestOf(given, choices);
  const question = suggestion === null ? '' : ` Did you mean ${suggestion}?`;
  return new UsageError(`Unknown ${kind} '${given}'.${question} Choices: ${choices.join(', ')}.`);
}
