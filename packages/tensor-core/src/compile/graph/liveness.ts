import type { Call, Program } from './graph.ts';

/** Whether nobody needs a storage behind its last use: the program makes it, and it does not outlive a run. */
export function isIntermediate(
  { storages, kept }: Pick<Program, 'storages' | 'kept'>,
  storage: number,
): boolean {
  return storages[storage]!.source.kind === 'made' && !kept.has(storage);
}

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

/** For each group of calls that run together, the intermediate storages that no later group uses. */
export function lastUses(
  program: Pick<Program, 'storages' | 'kept'>,
  groups: readonly (readonly Call[])[],
): number[][] {
  const seen = new Set<number>();
  const uses: number[][] = groups.map(() => []);
  for (let i = groups.length - 1; i >= 0; i--) {
    for (const { inputs, outputs } of groups[i]!) {
      for (const { storage } of [...inputs, ...outputs]) {
        if (seen.has(storage) || !isIntermediate(program, storage)) continue;
        seen.add(storage);
        uses[i]!.push(storage);
      }
    }
  }
  return uses;
}
