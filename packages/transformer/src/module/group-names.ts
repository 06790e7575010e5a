/**
 * Names that differ in their numbers alone, as those of layers do, in one: `layers.{0-11}.attn.q_proj.weight`. Each with what it
 * stands for, in the order of the first.
 */
export function groupNames(names: readonly string[]): { readonly name: string; readonly names: string[] }[] {
  const groups = Map.groupBy(names, (name) => name.replace(/\d+/, '#'));
  return [...groups.values()].map((its) => ({ name: joinNumbers(its), names: its }));
}

/** By their first number, which layers have; those of more than one are told apart by the others. */
function joinNumbers(names: readonly string[]): string {
  const [first] = names as [string];
  if (names.length === 1) return first;
  const numbers = names.map((name) => Number(/\d+/.exec(name)![0])).sort((a, b) => a - b);
  return first.replace(/\d+/, `{${runsOf(numbers)}}`);
}

/** `0-3,7`: of sorted numbers. */
function runsOf(numbers: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}
