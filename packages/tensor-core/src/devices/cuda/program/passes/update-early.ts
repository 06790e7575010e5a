import { CompileError } from '../../../../errors.ts';
import type { CudaProperties, CustomKernel, UpdateByTensor } from '../../../../op/cuda-lowering.ts';
import type { ComputeOp } from '../../../../op/op.ts';
import type { Call, Operand, Program } from '../../../../program/program.ts';
import { byteSize } from '../../../../tensor/dtype.ts';
import { withCopies, withoutCopies } from './copying-op.ts';
import { areIndependent } from './operands.ts';
import { Rewrite } from './rewrite.ts';

/** What a call updates of one tensor, and when it can. */
interface TensorUpdate {
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  /** In lower precision. */
  readonly copy: Operand | null;
  /** The place of the last call that it must stay behind; -1 for none. */
  readonly readyBehind: number;
  /** Of what the program has made and nobody needs behind the update. */
  readonly freedBytes: number;
}

/** An update of several tensors, without the copies that it writes. */
interface Update {
  readonly call: Call;
  readonly byTensor: UpdateByTensor<never>;
  readonly shared: readonly Operand[];
  readonly tensors: readonly TensorUpdate[];
}

/**
 * A program whose optimizers update a tensor as soon as its gradient is final and nothing reads the tensor as it was any
 * more, so that memory never holds all gradients: those of so many bytes at a time as half of the GPU's L2 cache, where the
 * update finds them. The results are the same bits. Gradients that are looked at together first, as clipping and a scaler
 * do, are there together.
 */
export function updateEarly(program: Program, { l2Bytes }: Pick<CudaProperties, 'l2Bytes'>): Program {
  const rewrite = new Rewrite(program);
  const behind = new Map<number, Call[]>();
  program.calls.forEach((call, at) => {
    const update = updateOf(rewrite, call);
    const groups = update ? earlyGroups(update, at, l2Bytes / 2) : [];
    if (groups.length === 0) return;
    const coefficients = coefficientsCall(rewrite, update!);
    rewrite.hoist(coefficients, program.calls[0]!);
    const early = new Set(groups.flat());
    const rest = update!.tensors.filter((tensor) => !early.has(tensor));
    rewrite.replace(call, ...(rest.length > 0 ? [partialCall(update!, rest, coefficients)] : []));
    for (const group of groups) {
      const place = group.at(-1)!.readyBehind;
      behind.set(place, [...(behind.get(place) ?? []), partialCall(update!, group, coefficients)]);
    }
  });
  for (const [place, parts] of behind) rewrite.addBehind(program.calls[place]!, parts);
  return rewrite.finish();
}

/** What a call updates, tensor by tensor; null for one that is no such update. */
function updateOf(rewrite: Rewrite, call: Call): Update | null {
  const { call: plain, copies } = withoutCopies(call);
  const { cuda } = plain.op;
  if (cuda.kind !== 'custom' || !cuda.byTensor) return null;
  const { written, roles } = cuda.byTensor;
  const count = plain.outputs.length / written;
  const shared = plain.inputs.slice(roles * count);
  const ofTensor = (operands: readonly Operand[], lists: number, tensor: number) =>
    Array.from({ length: lists }, (_, role) => operands[role * count + tensor]!);
  const tensors = Array.from({ length: count }, (_, tensor): TensorUpdate => {
    const inputs = ofTensor(plain.inputs, roles, tensor);
    const outputs = ofTensor(plain.outputs, written, tensor);
    const copy = copies[tensor] ?? null;
    const part = { ...plain, inputs: [...inputs, ...shared], outputs: copy ? [...outputs, copy] : outputs };
    const freed = inputs.slice(written).filter((input) => isFreedBehind(rewrite, input, call));
    return {
      ...{ inputs, outputs, copy },
      readyBehind: lastConflict(rewrite, part, rewrite.placeOf(call)),
      freedBytes: freed.reduce((sum, { byteLength }) => sum + byteLength, 0),
    };
  });
  return { call: plain, byTensor: cuda.byTensor, shared, tensors };
}

/** The place of the last call in front of `before` that `call` may not change places with; -1 for none. */
function lastConflict(rewrite: Rewrite, call: Call, before: number): number {
  const { program, uses } = rewrite;
  const storages = new Set([...call.inputs, ...call.outputs].map(({ storage }) => storage));
  return [...storages]
    .flatMap((storage) => uses.get(storage)!.map((user) => rewrite.placeOf(user)))
    .filter((place) => place < before && !areIndependent(call, program.calls[place]!))
    .reduce((last, place) => Math.max(last, place), -1);
}

function isFreedBehind({ program, uses }: Rewrite, { storage }: Operand, reader: Call): boolean {
  const { kept, storages } = program;
  return (
    !kept.has(storage) && storages[storage]!.source.kind === 'made' && uses.get(storage)!.at(-1) === reader
  );
}

/**
 * The tensors that are updated together before the update's own place, by when that is. Each group frees `mostBytes`, but
 * for what more is ready with its last tensor.
 */
function earlyGroups({ tensors }: Update, at: number, mostBytes: number): TensorUpdate[][] {
  const early = tensors
    .filter(({ readyBehind, freedBytes }) => readyBehind >= 0 && readyBehind < at - 1 && freedBytes > 0)
    .toSorted((x, y) => x.readyBehind - y.readyBehind);
  const groups: TensorUpdate[][] = [];
  let [waiting, bytes]: [TensorUpdate[], number] = [[], 0];
  early.forEach((tensor, i) => {
    waiting.push(tensor);
    bytes += tensor.freedBytes;
    if (bytes < mostBytes || early[i + 1]?.readyBehind === tensor.readyBehind) return;
    groups.push(waiting);
    [waiting, bytes] = [[], 0];
  });
  return groups;
}

/** Writes what all parts of an update read. */
function coefficientsCall(rewrite: Rewrite, { call, byTensor }: Update): Call {
  const size = byTensor.coefficientCount;
  const byteLength = size * byteSize('float32');
  const storage = rewrite.add({ byteLength, dtype: 'float32', source: { kind: 'made' } }, () => new Map());
  const layout = { shape: [size], strides: [1], offset: 0, isContiguous: true };
  const output: Operand = { storage, dtype: 'float32', size, byteLength, ...layout };
  const op = partialOp(`${call.op.name}_coefficients`, {
    kind: 'custom',
    launch: (context, _, [memory], attributes) => byTensor.coefficients(context, memory!, attributes),
  });
  return { ...call, op, inputs: [], outputs: [output] };
}

/** The update of some of its tensors. */
function partialCall(
  { call, byTensor, shared }: Update,
  tensors: readonly TensorUpdate[],
  { outputs: [coefficients] }: Call,
): Call {
  const lists = (operandsOf: (tensor: TensorUpdate) => readonly Operand[], count: number) =>
    Array.from({ length: count }, (_, role) => tensors.map((tensor) => operandsOf(tensor)[role]!)).flat();
  const inputs = lists((tensor) => tensor.inputs, byTensor.roles);
  const outputs = lists((tensor) => tensor.outputs, byTensor.written);
  const { cost, mutates } = call.op;
  const op = {
    ...partialOp(call.op.name, {
      kind: 'custom',
      copied: tensors.length,
      launch: (context, operands, written, _, __, copies) =>
        byTensor.launch(context, operands, written, copies),
    }),
    ...(cost && { cost }),
    ...(mutates && { mutates: outputs.map((_, i) => i) }),
  };
  const part = { ...call, op, inputs: [...inputs, ...shared, coefficients!], outputs, live: null };
  return withCopies(
    part,
    tensors.map(({ copy }) => copy),
  );
}

function partialOp(name: string, cuda: CustomKernel<never>): ComputeOp<never> {
  return {
    kind: 'compute',
    name,
    autocast: 'none',
    infer: () => [],
    cuda,
    cpu: {
      kind: 'host',
      run() {
        throw new CompileError(
          `${name}: an update is made in parts on GPUs alone; run the program that they come from.`,
        );
      },
    },
  };
}
