import { UsageError } from '../errors.ts';

/** The choice that is spelt most like `given`; undefined where none is close. */
export function nearest(given: string, choices: readonly string[]): string | undefined {
  const close = Math.max(2, Math.ceil(given.length / 3));
  return choices
    .map((choice) => ({ choice, distance: editDistance(given.toLowerCase(), choice.toLowerCase()) }))
    .filter(({ distance }) => distance <= close)
    .sort((a, b) => a.distance - b.distance)[0]?.choice;
}

/** A UsageError that names what was given, the nearest choice, and all of them. */
export function unknownChoice(kind: string, given: string, choices: readonly string[]): UsageError {
  const suggestion = nearest(given, choices);
  const question = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  return new UsageError(`Unknown ${kind} '${given}'.${question} Choices: ${choices.join(', ')}.`);
}

/**
 * The fewest insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (the optimal
 * string alignment distance).
 */
export function editDistance(a: string, b: string): number {
  const distances = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const above = distances[row - 1]!;
      const substitution = above[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swap = swapped ? distances[row - 2]![column - 2]! + 1 : Infinity;
      current.push(Math.min(above[column]! + 1, current[column - 1]! + 1, substitution, swap));
    }
    distances.push(current);
  }
  return distances[a.length]![b.length]!;
}
