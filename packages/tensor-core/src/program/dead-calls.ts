import type { Call, Program } from './program.ts';

/** The calls whose work somebody sees: it reaches a kept or a given storage, or they check something and give nothing. */
export function withoutDeadCalls({
  calls,
  storages,
  kept,
}: Pick<Program, 'calls' | 'storages' | 'kept'>): Call[] {
  const needed = new Set(kept);
  storages.forEach(({ source }, number) => source.kind !== 'made' && needed.add(number));
  const alive: Call[] = [];
  for (const call of calls.toReversed()) {
    const { outputs } = call;
    if (outputs.length > 0 && !outputs.some(({ storage }) => needed.has(storage))) continue;
    for (const { storage } of call.inputs) needed.add(storage);
    alive.push(call);
  }
  return alive.reverse();
}

/**
 * For each group of calls that run together, the made storages that no later group uses and that nobody keeps.
 */
export function lastUses(
  { storages, kept }: Pick<Program, 'storages' | 'kept'>,
  groups: readonly (readonly Call[])[],
): number[][] {
  const seen = new Set(kept);
  const uses: number[][] = groups.map(() => []);
  for (let i = groups.length - 1; i >= 0; i--) {
    for (const { inputs, outputs } of groups[i]!) {
      for (const { storage } of [...inputs, ...outputs]) {
        if (seen.has(storage) || storages[storage]!.source.kind !== 'made') continue;
        seen.add(storage);
        uses[i]!.push(storage);
      }
    }
  }
  return uses;
}
