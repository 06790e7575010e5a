import type { Call, Graph } from './graph.ts';
import { hasEffects } from './ordered-effects.ts';

/** Whether a storage can be freed after its last use: the graph makes it, and it does not outlive the run. */
export function isIntermediate(
  { storages, kept }: Pick<Graph, 'storages' | 'kept'>,
  storage: number,
): boolean {
  return storages[storage]!.source.kind === 'made' && !kept.has(storage);
}

/** The calls that are not dead: their results reach a kept or a given storage, or they check something, or have other effects. */
export function withoutDeadCalls({
  calls,
  storages,
  kept,
}: Pick<Graph, 'calls' | 'storages' | 'kept'>): Call[] {
  const needed = new Set(kept);
  storages.forEach(({ source }, number) => source.kind !== 'made' && needed.add(number));
  const alive: Call[] = [];
  for (const call of calls.toReversed()) {
    const { outputs } = call;
    const mayBeDead = outputs.length > 0 && !hasEffects(call);
    if (mayBeDead && !outputs.some(({ storage }) => needed.has(storage))) continue;
    for (const { storage } of call.inputs) needed.add(storage);
    alive.push(call);
  }
  return alive.reverse();
}

/** For each group of calls that run together, the intermediate storages used there for the last time. */
export function lastUses(
  graph: Pick<Graph, 'storages' | 'kept'>,
  groups: readonly (readonly Call[])[],
): number[][] {
  const seen = new Set<number>();
  const uses: number[][] = groups.map(() => []);
  for (let i = groups.length - 1; i >= 0; i--) {
    for (const { inputs, outputs } of groups[i]!) {
      for (const { storage } of [...inputs, ...outputs]) {
        if (seen.has(storage) || !isIntermediate(graph, storage)) continue;
        seen.add(storage);
        uses[i]!.push(storage);
      }
    }
  }
  return uses;
}
