import { isAccumulation } from '../../../src/compile/passes/accumulate-products.ts';
import { isFused } from '../../../src/compile/passes/fused-ops.ts';
import { isOp } from '../../../src/compile/passes/is-op.ts';
import { computeDTypeOf } from '../../../src/compile/passes/pointwise-call.ts';
import { rewritesOf } from '../../../src/compile/passes/rewrites-of.ts';
import { embeddingOp } from '../../../src/ops/index/embedding.ts';
import type { Call, Operand } from '../../../src/compile/graph/graph.ts';
import { byteSize } from '../../../src/base/dtype.ts';
import { areApart, isSamePlace } from './symbolic-memory.ts';

// The limits of one generated kernel, and the vectors that kernels read and write at once.
const mostInputs = 8;
const mostOperands = 10;
const vectorBytes = 16;

/** Throws an Error for a call that a GPU's kernel would get wrong, or that no kernel can be made for. */
export function checkKernel(call: Call): void {
  const { op, outputs } = call;
  checkWrites(call);
  if (op.name.startsWith('finish_'))
    check(call, areAlike(outputs) && areAlike(call.inputs), 'finishes others together');
  if (isAccumulation(call)) checkAccumulation(call);
  if (op.cuda.kind === 'custom') checkCustom(call);
  else if (isFused(op)) checkGenerated(call);
}

function check({ op }: Call, holds: boolean, what: string): void {
  if (!holds) throw new Error(`${op.name} ${what}.`);
}

/** Other threads of a call may still read what one writes, except its own element. */
function checkWrites(call: Call): void {
  const { op, inputs, outputs, members = [] } = call;
  const tables = members.filter((member) => isOp(member.op, embeddingOp)).map((member) => member.inputs[0]!);
  outputs.forEach((output, i) => {
    const others = outputs.filter((_, at) => at !== i);
    const isMutated = op.mutates?.includes(i) ?? false;
    const meets = (other: Operand) => !areApart(other, output);
    const clashes = [
      ...inputs.filter((input) => meets(input) && !isMutated && !isSamePlace(input, output)),
      ...others.filter((other) => meets(other) && !isSamePlace(other, output)),
      ...tables.filter(meets),
    ];
    check(call, clashes.length === 0, 'writes what it reads or writes elsewhere');
  });
}

/** Products of low precision, added to something with the layout of the sum. */
function checkAccumulation(call: Call): void {
  const [a, b, c] = call.inputs as readonly [Operand, Operand, Operand];
  const [d] = call.outputs as readonly [Operand];
  const isLow = a.dtype === b.dtype && byteSize(a.dtype) === 2;
  check(call, isLow && (d.dtype === a.dtype || d.dtype === 'float32'), 'is of dtypes that no product has');
  check(call, c.isContiguous && d.isContiguous && areAlike([c, d]), 'adds to something that lies otherwise');
}

function checkGenerated(call: Call): void {
  const { inputs, outputs, members } = call;
  check(call, inputs.length <= mostInputs, 'has too many inputs');
  check(call, inputs.length + outputs.length <= mostOperands, 'has too many operands');
  const dtype = computeDTypeOf(inputs, outputs);
  const isOneDType = members!.every((each) => computeDTypeOf(each.inputs, each.outputs) === dtype);
  check(call, isOneDType, 'calculates in several dtypes');
  check(
    call,
    new Set(outputs.map(({ storage }) => storage)).size === outputs.length,
    'writes one storage twice',
  );
}

function checkCustom(call: Call): void {
  const rewrites = rewritesOf(call);
  const isWritten = (output: Operand) => output.isContiguous || rewrites.writesStrided?.(output) === true;
  const isMadeByOwn = !(call.op.mutates?.length ?? 0);
  check(call, !isMadeByOwn || call.outputs.every(isWritten), 'writes a layout that it cannot');
  if (!isFused(call.op)) return;
  if (rewrites.takesTwo) checkPair(call, rewrites.takesTwo);
  for (const [i, member] of call.members!.entries()) {
    const isKernelFusion = call.members!.some((other) => rewritesOf(other).fusion);
    if (isKernelFusion && member.op.cuda.kind === 'pointwise') checkFusedMember(call, member, i);
  }
}

/** A prologue or epilogue reads and writes rows of the kernel's shape in whole vectors, and single elements. */
function checkFusedMember(call: Call, member: Call, at: number): void {
  const inMemory = [...call.inputs, ...call.outputs];
  for (const operand of [...member.inputs, ...member.outputs]) {
    if (operand.size === 1 || !inMemory.some((other) => isSamePlace(other, operand))) continue;
    const isWhole = operand.isContiguous && (operand.offset * byteSize(operand.dtype)) % vectorBytes === 0;
    check(call, isWhole, `has a prologue or epilogue, member ${at}, that is not aligned to vectors`);
  }
}

/** Both halves of a pair do the same, to tensors of the same layout. */
function checkPair(call: Call, doubled: readonly number[]): void {
  const [a, b] = call.members as readonly [Call, Call];
  a.inputs.forEach((input, place) => {
    const other = b.inputs[place]!;
    const isFit = doubled.includes(place) ? lieAlike(input, other) : isSamePlace(input, other);
    check(call, isFit, 'is of two that differ');
  });
  check(call, lieAlike(a.outputs[0]!, b.outputs[0]!), 'is of two that differ');
  check(call, JSON.stringify(a.attributes) === JSON.stringify(b.attributes), 'is of two that differ');
}

function lieAlike(a: Operand, b: Operand): boolean {
  const steps = ({ shape, strides }: Operand) =>
    strides.map((stride, d) => (shape[d] === 1 ? 0 : stride)).join();
  return a.dtype === b.dtype && a.shape.join() === b.shape.join() && steps(a) === steps(b);
}

function areAlike(operands: readonly Operand[]): boolean {
  return operands.every(
    ({ dtype, shape }) => dtype === operands[0]!.dtype && shape.join() === operands[0]!.shape.join(),
  );
}
