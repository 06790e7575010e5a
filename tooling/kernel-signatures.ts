import { readFileSync } from 'node:fs';
import { declaredParameters as parametersIn } from '../packages/cuda/src/launch/declared-parameters.ts';

/** The parameters of a kernel as its source declares them: names and types, in their order; of other types, structures. */
export function declaredParameters(source: URL, kernel: string): Record<string, string> {
  const parameters = parametersIn(readFileSync(source, 'utf8'), kernel);
  if (parameters === null) throw new Error(`${source.pathname} declares no kernel ${kernel}.`);
  return Object.fromEntries(parameters.map(({ name, type }) => [name, type ?? 'struct']));
}
