import type { CustomKernel } from '../../op/cuda-lowering.ts';
import type { DeferredOutputs } from '../../op/kernel-rewrites.ts';
import type { CudaProperties } from '@roofline/cuda';
import type { MemoryView } from '../../base/memory-view.ts';
import type { ComputeOp } from '../../op/op.ts';
import type { OpenRange } from '../../tensor/ranges/range.ts';
import type { Call, Operand, Graph, GraphStorage } from '../graph/graph.ts';
import { gpuOp } from './gpu-op.ts';
import { areDisjoint } from './operands.ts';
import { rewritesOf } from './rewrites-of.ts';
import { byteSize } from '../../base/dtype.ts';
import { contiguousStrides, sameShape, sizeOf } from '../../base/shape.ts';

/** The most outputs that one call finishes, so that partial results do not pile up. */
const mostTogether = 16;

/** An output that so far exists only as partial results. */
interface Unfinished {
  readonly partial: Operand;
  readonly output: Operand;
  readonly finish: DeferredOutputs['finish'];
  readonly opName: string;
  readonly range: OpenRange | null;
}

/**
 * Splits ops that end with a small kernel, such as the sums of norms' weight gradients, and runs the small kernels of many of
 * them as one call, before anything uses their outputs.
 */
export function finishTogether(graph: Graph, properties: CudaProperties): Graph {
  const storages = [...graph.storages];
  const calls: Call[] = [];
  let waiting: Unfinished[] = [];
  const finish = () => {
    calls.push(...finishingCalls(waiting));
    waiting = [];
  };
  for (const call of graph.calls) {
    if (waiting.some(({ output }) => uses(call, output))) finish();
    const split = splitCall(call, properties, storages);
    calls.push(split?.call ?? call);
    waiting.push(...(split?.unfinished ?? []));
    if (waiting.length >= mostTogether) finish();
  }
  finish();
  return { ...graph, storages, calls };
}

/** Whether a call reads or writes some of an output, which may be in a storage with others. */
function uses({ inputs, outputs }: Call, output: Operand): boolean {
  return [...inputs, ...outputs].some((operand) => !areDisjoint(operand, output));
}

/** `call` with partial results, in storages that are added, in place of outputs; null where it has no deferred ones. */
function splitCall(
  call: Call,
  properties: CudaProperties,
  storages: GraphStorage[],
): { readonly call: Call; readonly unfinished: readonly Unfinished[] } | null {
  const { op, inputs, outputs, live, range } = call;
  const { deferred } = rewritesOf(call);
  const areDense = [...inputs, ...outputs].every(({ size, isContiguous }) => size > 0 && isContiguous);
  if (!deferred || live !== null || !areDense) return null;
  const specs = deferred.partials(properties, inputs.map(placed), outputs.map(placed));
  const unfinished = specs.map(({ shape, dtype }, i): Unfinished => {
    const size = sizeOf(shape);
    const byteLength = size * byteSize(dtype);
    const storage = storages.push({ byteLength, dtype, source: { kind: 'made' }, isWorkspace: true }) - 1;
    const layout = { shape, strides: contiguousStrides(shape), offset: 0, isContiguous: true };
    const partial = { storage, dtype, size, byteLength, ...layout };
    return { partial, output: outputs[deferred.first + i]!, finish: deferred.finish, opName: op.name, range };
  });
  const own = [...outputs.slice(0, deferred.first), ...unfinished.map(({ partial }) => partial)];
  return { call: { ...call, op: withoutFinish(op), outputs: own }, unfinished };
}

/** An operand at an address relative to its storage: storages are aligned for all vectors. */
function placed(operand: Operand): MemoryView {
  const { shape, strides, offset, dtype, size, byteLength, isContiguous } = operand;
  const address = offset * byteSize(dtype);
  const storage = { byteLength, buffer: { address: 0 } } as MemoryView['storage'];
  return { shape, strides, offset, dtype, size, byteLength, isContiguous, address, storage };
}

/** By op, the one that leaves its outputs as partial results. */
const unfinishedOps = new WeakMap<ComputeOp<never>, ComputeOp<never>>();

function withoutFinish(op: ComputeOp<never>): ComputeOp<never> {
  let own = unfinishedOps.get(op);
  if (!own) {
    const { deferred, ...rewrites } = rewritesOf({ op });
    const launch: CustomKernel<never>['launch'] = (context, inputs, outputs, _, fused) =>
      deferred!.launch(context, inputs, outputs, fused?.fusion);
    const cuda = op.cuda as CustomKernel<never>;
    unfinishedOps.set(op, (own = { ...op, cuda: { ...cuda, rewrites, launch } }));
  }
  return own;
}

/** One call for each group of outputs that one kernel can finish. */
function finishingCalls(waiting: readonly Unfinished[]): Call[] {
  const groups: Unfinished[][] = [];
  for (const one of waiting) {
    const group = groups.find(([first]) => isFinishedAlike(first!, one));
    if (group) group.push(one);
    else groups.push([one]);
  }
  return groups.map((group) => ({
    op: finishOp(group[0]!),
    inputs: group.map(({ partial }) => partial),
    outputs: group.map(({ output }) => output),
    attributes: undefined,
    live: null,
    range: group.at(-1)!.range,
  }));
}

function isFinishedAlike(a: Unfinished, b: Unfinished): boolean {
  const isAlike = (first: Operand, second: Operand) =>
    first.dtype === second.dtype && sameShape(first.shape, second.shape);
  return a.finish === b.finish && isAlike(a.partial, b.partial) && isAlike(a.output, b.output);
}

function finishOp({ opName, finish }: Unfinished): ComputeOp<never> {
  return gpuOp(`finish_${opName}`, (context, partials, outputs) => finish(context, partials, outputs));
}
