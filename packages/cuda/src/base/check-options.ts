import { describeValue } from './check-value.ts';
import { RooflineError } from './errors.ts';
import { nearestOf } from './nearest.ts';

/**
 * Throws a RooflineError (code OPTION) if `options` is no object or has an option that `owner` does not know; the
 * nearest of the `known` ones is named. TypeScript tells most callers; those from JavaScript would be ignored silently.
 */
export function checkOptions(owner: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new RooflineError(
      'OPTION',
      `${owner}: options are an object such as { ${known[0]} }, not ${describeValue(options)}.`,
    );
  }
  for (const name in options) {
    if (known.includes(name)) continue;
    const nearest = nearestOf(name, known);
    const it = nearest === null ? 'it' : `did you mean "${nearest}"? It`;
    throw new RooflineError(
      'OPTION',
      `${owner}: there is no option "${name}"; ${it} takes ${known.join(', ')}.`,
    );
  }
}
