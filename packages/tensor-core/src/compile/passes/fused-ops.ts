import type { CudaLowering } from '../../op/cuda-lowering.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { Call, Operand } from '../graph/graph.ts';
import { gpusAlone } from './gpu-op.ts';

/** A name names kernels and files: beyond so many characters it counts the members that it leaves out. */
const longestName = 72;

const fusedOps = new WeakSet<ComputeOp<never>>();

/** Whether `fusedCall` made the op. */
export function isFused(op: ComputeOp<never>): boolean {
  return fusedOps.has(op);
}

/** The members of a call that does the work of `calls`: where one of these has members itself, they take its place. */
export function membersOf(calls: readonly Call[]): Call[] {
  return calls.flatMap((call) => call.members ?? [call]);
}

/** One call in the place of `calls`, in their order, by an op that runs on GPUs alone. */
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
    cpu: gpusAlone(name),
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
