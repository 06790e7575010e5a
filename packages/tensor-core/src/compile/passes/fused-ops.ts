import type { CudaLowering } from '../../op/cuda-lowering.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { onlyOnGpus } from './gpu-op.ts';

/** Names appear in kernels and files: a longer one only counts the members that it leaves out. */
const longestName = 72;

const fusedOps = new WeakSet<ComputeOp<never>>();

/** Whether an op is one that `fusedCall` has made. */
export function isFused(op: ComputeOp<never>): boolean {
  return fusedOps.has(op);
}

/** The members of a call fused from `calls`, where fused calls are replaced by their own members. */
export function membersOf(calls: readonly Call[]): Call[] {
  return calls.flatMap((call) => call.members ?? [call]);
}

/** One call in place of `calls`, which are in order; its op runs only on GPUs. */
export function fusedCall(
  calls: readonly Call[],
  inputs: readonly Operand[],
  outputs: readonly Operand[],
  lowering: Pick<ComputeOp<undefined>, 'scalars'> & { readonly cuda: CudaLowering<undefined> },
): Call {
  const members = membersOf(calls);
  const name = fusedName(members.map(({ op }) => op.name));
  const fused: ComputeOp<undefined> = {
    ...lowering,
    kind: 'compute',
    name,
    autocast: 'none',
    infer: () => outputs,
    variant: () => '',
    cpu: onlyOnGpus(name),
  };
  fusedOps.add(fused);
  const { range } = calls.at(-1)!;
  return { op: fused, inputs, outputs, attributes: undefined, live: null, range, members };
}

function fusedName(names: readonly string[]): string {
  let name = 'fused';
  for (const [i, next] of names.entries()) {
    if (name.length + next.length > longestName) return `${name}_and_${names.length - i}_more`;
    name += `_${next}`;
  }
  return name;
}
