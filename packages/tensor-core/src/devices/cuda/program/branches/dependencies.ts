import type { Call, Operand } from '../../../../program/program.ts';
import { areDisjoint } from '../passes/operands.ts';

interface Use {
  readonly call: number;
  readonly operand: Operand;
  readonly writes: boolean;
}

/**
 * For each call the earlier ones that it must run behind, by their indices: those that wrote what it reads or writes, and
 * those that read what it writes.
 */
export function dependenciesOf(calls: readonly Call[]): ReadonlySet<number>[] {
  const usesByStorage = new Map<number, Use[]>();
  return calls.map(({ inputs, outputs }, call) => {
    const found = new Set<number>();
    const own = [
      ...inputs.map((operand) => ({ call, operand, writes: false })),
      ...outputs.map((operand) => ({ call, operand, writes: true })),
    ];
    for (const { operand, writes } of own)
      for (const earlier of usesByStorage.get(operand.storage) ?? [])
        if ((writes || earlier.writes) && !areDisjoint(operand, earlier.operand)) found.add(earlier.call);
    for (const use of own) {
      const uses = usesByStorage.get(use.operand.storage);
      if (uses) uses.push(use);
      else usesByStorage.set(use.operand.storage, [use]);
    }
    return found;
  });
}
