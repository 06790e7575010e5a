import {
  DeviceError,
  checkFunction,
  checkObject,
  checkOptions,
  checkText,
  wrongArgument,
} from '@roofline/cuda/host';
import type { CpuLowering } from './cpu-lowering.ts';
import type { CudaLowering } from './cuda-lowering.ts';
import type { Layout } from '../base/shape.ts';
import type { TensorSpec } from '../base/memory-view.ts';
import type { Saves } from '../tensor/tape/save-plan.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** Work of one call: floating-point operations, and the fewest bytes it must move through device memory. */
export interface Cost {
  readonly flops: number;
  readonly bytesMoved: number;
  /** Bytes that the device sends to others, or receives from them, over their link. Default: none. */
  readonly linkBytes?: number;
  /** Which ceiling bounds it. Default: memory. */
  readonly boundBy?: 'tensorCores' | 'memory';
}

/**
 * What calls of an op do beyond their outputs, such as a process group's collectives, which take part in what other processes do.
 * The compiler neither drops, repeats nor merges such calls, and keeps the order of all of them as it was traced. They run on a
 * stream of their own: their first reader waits for them.
 */
export interface OrderedEffects<A> {
  readonly kind: 'ordered';
  /** The order that a call with these attributes keeps. */
  orderOf(attributes: A): EffectOrder;
  /** A call in a few words that are the same on all ranks that take part; null for one that is not the same on all. */
  describe(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attributes: A): string | null;
}

/** What keeps calls in one order, such as a process group. */
export interface EffectOrder {
  /** On a GPU, how many multiprocessors its calls take from those that they run beside; not said where that is unknown. */
  readonly multiprocessors?: number;
  /**
   * Called before the first replay of the compiled function `program`, with its calls in this order. Throws unless all ranks that take
   * part have compiled the same.
   */
  agree(program: string, calls: readonly string[]): void;
  /** On a GPU, throws where the calls of the compiled function `program` cannot run any more. */
  assertUsable(program: string): void;
  /**
   * On a GPU, queues a captured program by `launch`, on the current stream and after all calls of this order so far. Throws where
   * its calls, which are those that `agree` was given, cannot run any more.
   */
  launch(program: string, calls: readonly string[], launch: () => void): void;
  /**
   * On a GPU: calls `drop`, which frees a captured program, before this order ends, since the program uses what ends with it. Returns
   * a function that takes `drop` back.
   */
  beforeEnd(drop: () => void): () => void;
}

/** What a gradient rule gets. Saved tensors are those that `saves` named; asking for others throws. */
export interface GradientContext<A> {
  readonly attributes: A;
  /** The gradient of each output; null where nothing downstream used that output. */
  readonly gradients: readonly (Tensor | null)[];
  /** Whether the gradient of input `i` is wanted. */
  readonly needs: readonly boolean[];
  /** The inputs as given, whereas autocast may have cast what `input` returns. Gradients are cast to these dtypes. */
  readonly inputSpecs: readonly TensorSpec[];
  readonly outputSpecs: readonly TensorSpec[];
  input(index: number): Tensor;
  output(index: number): Tensor;
  /**
   * The preferred place of the gradient of input `index`, such as in a bucket of gradients, or null. Pass it to `apply` or
   * `applyOne` of the last op of that gradient only, and use that output for no other input; each is returned once. A gradient
   * that is made elsewhere is copied there.
   */
  destination(index: number): Tensor | null;
}

/**
 * How autocast treats an op: `lower` and `float32` cast its floating-point inputs to the low dtype or to float32; a `promote`
 * op takes them as they are and works in the widest, and `none` is left alone.
 */
export type AutocastClass = 'lower' | 'float32' | 'promote' | 'none';

interface OpBase<A> {
  readonly name: string;
  readonly autocast: AutocastClass;
  /** What to keep for the backward pass, given which inputs need a gradient. Default: nothing. */
  saves?(needs: readonly boolean[]): Saves;
  /** Gradients of the inputs, in their order; null where not wanted. An op without one is not differentiable. */
  gradient?(context: GradientContext<A>): readonly (Tensor | null)[];
}

/** An op that computes. */
export interface ComputeOp<A> extends OpBase<A> {
  readonly kind: 'compute';
  /** Shapes and dtypes of the outputs. Throws ShapeError or DTypeError. */
  infer(inputs: readonly TensorSpec[], attributes: A): readonly TensorSpec[];
  /** Inputs that are written in place; output `i` is then input `mutates[i]`. */
  readonly mutates?: readonly number[];
  /** Default: a call does nothing but make its outputs. */
  readonly effects?: OrderedEffects<A>;
  /** Numbers that change from call to call without a new kernel or graph. */
  scalars?(attributes: A): readonly number[];
  /** The part of the attributes that selects a kernel or graph. Default: all of them, as JSON. */
  variant?(attributes: A): string;
  /**
   * For a fused op, the same in smaller ops, with their gradients: tests compare the op to it, and it serves where there is no
   * fused lowering. Returns the outputs that callers see, which come first; call it in a scope.
   */
  reference?(inputs: readonly Tensor[], attributes: A): readonly Tensor[];
  /** Default: no FLOPs, every input read and every output written once. */
  cost?(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], attributes: A): Cost;
  readonly cuda: CudaLowering<A>;
  readonly cpu: CpuLowering<A>;
}

/** An op that only reads its one input's storage differently. It never runs on a device. */
export interface ViewOp<A> extends OpBase<A> {
  readonly kind: 'view';
  layout(input: Layout, attributes: A): Layout;
}

/** An op that computes, with attributes of type `A`. */
export type Op<A> = ComputeOp<A>;

/** What `defineOp` takes: everything about an op, with how it runs on both devices or on one of them. */
export type OpDefinition<A> = Omit<ComputeOp<A>, 'kind' | 'cuda' | 'cpu'> &
  Partial<Pick<ComputeOp<A>, 'cuda' | 'cpu'>>;

/**
 * Defines an op that computes, everything about it in one place. One without `cuda`, or without `cpu`, throws a DeviceError
 * when it is to run on that device.
 */
export function defineOp<A = undefined>(definition: OpDefinition<A>): ComputeOp<A> {
  checkDefinition('defineOp', definition, [...common, ...ofCompute]);
  checkFunction('defineOp', 'infer', definition.infer);
  const { name, cuda, cpu } = definition;
  if (cuda === undefined && cpu === undefined)
    throw wrongArgument('defineOp', `${name} on a device`, 'given by cuda, cpu or both', cuda);
  if (cuda !== undefined) checkLowering('cuda', cuda, ['pointwise', 'reduction', 'custom']);
  if (cpu !== undefined) checkLowering('cpu', cpu, ['onnx', 'host', 'memory']);
  return {
    ...definition,
    kind: 'compute',
    cuda: cuda ?? {
      kind: 'custom',
      strided: true,
      launch: () => refuse(name, 'an NVIDIA GPU', 'cuda', 'the CPU'),
    },
    cpu: cpu ?? { kind: 'host', run: () => refuse(name, 'the CPU', 'cpu', 'a GPU') },
  };
}

function refuse(op: string, device: string, missing: string, other: string): never {
  throw new DeviceError(
    `${op} does not run on ${device}: its definition has no \`${missing}\`. Move its inputs to ${other} by ` +
      `toDevice(x, device), or give defineOp a \`${missing}\` for ${op}.`,
  );
}

/** Defines an op that only changes the layout. */
export function defineView<A>(definition: Omit<ViewOp<A>, 'kind'>): ViewOp<A> {
  checkDefinition('defineView', definition, [...common, 'layout']);
  checkFunction('defineView', 'layout', definition.layout);
  return { ...definition, kind: 'view' };
}

// A definition may be a spread of another op, which has a `kind`.
const autocastClasses: readonly AutocastClass[] = ['lower', 'float32', 'promote', 'none'];
const common = ['kind', 'name', 'autocast', 'saves', 'gradient'];
const ofCompute = ['infer', 'mutates', 'effects', 'scalars', 'variant', 'reference', 'cost', 'cuda', 'cpu'];

/** Refuses unknown names: a misspelt `gradient` would leave the op without one. */
function checkDefinition(
  owner: string,
  definition: { readonly name: string; readonly autocast: AutocastClass },
  known: readonly string[],
): void {
  checkOptions(owner, definition, known);
  checkText(owner, 'the name', definition.name);
  if (!autocastClasses.includes(definition.autocast)) {
    throw wrongArgument(owner, 'autocast', `one of ${autocastClasses.join(', ')}`, definition.autocast);
  }
}

function checkLowering(device: string, lowering: { readonly kind: string }, kinds: readonly string[]): void {
  checkObject('defineOp', device, lowering);
  if (kinds.includes(lowering.kind)) return;
  throw wrongArgument('defineOp', `the kind of ${device}`, `one of ${kinds.join(', ')}`, lowering.kind);
}
