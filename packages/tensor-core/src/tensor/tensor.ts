import {
  DeviceError,
  DisposedError,
  OutOfMemoryError,
  checkFlag,
  checkFunction,
  checkOptions,
  wrongArgument,
} from '@roofline/cuda/host';
import type { TapeNode } from './tape/tape.ts';
import type { Device } from './device.ts';
import { AutogradError, DTypeError, ShapeError } from '../base/errors.ts';
import type { MemoryView } from '../base/memory-view.ts';
import { type DType, byteSize, isFloatingPoint } from '../base/dtype.ts';
import { extentOf } from './storage/extent.ts';
import { type Held, freeGarbage, isCrowded, watchForLeak, stopWatching } from './lifetime/leak-watch.ts';
import { type Scope, Scoped } from './lifetime/scope.ts';
import { type Shape, contiguousStrides, formatShape, isContiguous, sizeOf } from '../base/shape.ts';
import { Storage } from './storage/storage.ts';
import { watchedChanges } from './storage/watched-changes.ts';
import { tracing } from './tracing.ts';

/** Called with a leaf whose gradient has come, and whether that had to be copied into the leaf's gradient buffer. */
export type GradientHook = (parameter: Tensor, wasCopied: boolean) => void;

/** What hooks say of themselves. */
export interface HookOptions {
  /**
   * Whether it does nothing that lasts but run ops: a compiled function then repeats those, and calls the hook in its first call
   * alone. Default false: functions in which it would run are not compiled.
   */
  readonly compiles?: boolean;
}

/** The end of the tape at a leaf: gradients that arrive here are added to `tensor.grad`. */
export class LeafNode {
  readonly tensor: Tensor;
  /** Where the first gradient is written; null to keep it where it is. */
  gradientBuffer: Tensor | null = null;
  /** The backward pass that may have written a gradient there that is not yet in `tensor.grad`. */
  bufferWriter: object | null = null;
  readonly hooks = new Map<GradientHook, Required<HookOptions>>();

  constructor(tensor: Tensor) {
    this.tensor = tensor;
  }
}

const noHooks: readonly GradientHook[] = [];

/** Throws a RooflineError, which names `owner`, for options that hooks do not have. */
export function checkedHookOptions(owner: string, options: HookOptions): Required<HookOptions> {
  checkOptions(owner, options, ['compiles']);
  const { compiles = false } = options;
  checkFlag(owner, 'compiles', compiles);
  return { compiles };
}

/** Where a gradient goes on the tape: an op's entry, or that of a leaf. */
export type Edge = TapeNode | LeafNode;

/** Where the gradient of each input of an entry goes. */
export function edgesOf(node: TapeNode): readonly (Edge | null)[] {
  return node.edges as readonly (Edge | null)[];
}

/**
 * A handle to an n-dimensional array on a device: a shape, strides and an offset over a counted storage. Dispose of it, or let
 * a `scope` do so; the garbage collector is only a safety net.
 */
export class Tensor extends Scoped implements MemoryView {
  readonly shape: Shape;
  /** In elements. */
  readonly strides: Shape;
  /** In elements, from the start of the storage. */
  readonly offset: number;
  readonly dtype: DType;
  readonly storage: Storage;
  /** Elements. */
  readonly size: number;
  readonly isContiguous: boolean;
  #grad: Tensor | null = null;
  /** The leaf whose `grad` this is, and with which it is disposed of; null once someone has taken it. */
  #leafOfGrad: Tensor | null = null;
  #node: TapeNode | null = null;
  #outputIndex = 0;
  #leaf: LeafNode | null = null;
  /** The leaf entry while no gradient is required: it returns, with its hooks and buffer, once one is. */
  #frozenLeaf: LeafNode | null = null;
  #disposed = false;
  /** What is freed if this handle is garbage-collected undisposed; null if a scope owns it. */
  #held: Held | null = null;

  /** Takes over one reference of `storage`. Tensors are made by the creation functions and by ops. @internal */
  constructor(storage: Storage, dtype: DType, shape: Shape, strides?: Shape, offset = 0) {
    super();
    this.storage = storage;
    storage.addHandle();
    this.dtype = dtype;
    this.shape = shape;
    this.size = sizeOf(shape);
    this.offset = offset;
    this.strides = strides ?? contiguousStrides(shape);
    this.isContiguous = strides === undefined || isContiguous(shape, strides);
    if (this.scope === null) this.#held = watchForLeak(this, null);
  }

  /** A new, uninitialised tensor. @internal */
  static allocate(device: Device, dtype: DType, shape: Shape): Tensor {
    return new Tensor(allocateStorage(device, sizeOf(shape) * byteSize(dtype)), dtype, shape);
  }

  get device(): Device {
    return this.storage.device;
  }

  get rank(): number {
    return this.shape.length;
  }

  get byteLength(): number {
    return this.size * byteSize(this.dtype);
  }

  /** The current address of the first element: in-place ops on the CPU and replays of compiled functions may move it. */
  get address(): number {
    return this.storage.buffer.address + this.offset * byteSize(this.dtype);
  }

  get isDisposed(): boolean {
    return this.#disposed;
  }

  /**
   * The sum of the gradients of backward passes for this leaf. It is disposed of with the leaf, unless it was passed to `keep`
   * or the leaf's scope returns it.
   */
  get grad(): Tensor | null {
    tracing.active?.gradientRead(this, this.#grad);
    return this.#grad;
  }

  set grad(grad: Tensor | null) {
    if (grad !== null && !(grad instanceof Tensor))
      throw wrongArgument('grad', 'it', 'a tensor or null', grad);
    tracing.active?.gradientSet(this, this.#grad);
    if (grad === this.#grad) return;
    if (this.#ownsGrad) this.#grad!.#leafOfGrad = null;
    this.#grad = grad;
    if (grad !== null) grad.#leafOfGrad = this;
    if (this.storage.isWatched) watchedChanges.gradients++;
  }

  get #ownsGrad(): boolean {
    return this.#grad !== null && this.#grad.#leafOfGrad === this;
  }

  /** The scope at whose end this is disposed, by itself or with its leaf. @internal */
  override get endsWith(): Scope | null {
    return this.scope ?? this.#leafOfGrad?.scope ?? null;
  }

  /** Moves it to another scope, also away from the leaf whose gradient it is; see `keep`. @internal */
  override moveTo(scope: Scope | null): void {
    this.#leafOfGrad = null;
    super.moveTo(scope);
  }

  /** The tape entry that made this tensor. @internal */
  get node(): TapeNode | null {
    return this.#node;
  }

  /** Which of that entry's outputs this is. @internal */
  get outputIndex(): number {
    return this.#outputIndex;
  }

  /** Makes this tensor output `index` of a tape entry, with a reference to the entry. @internal */
  setHistory(node: TapeNode, index: number): void {
    node.retain();
    this.#node?.release();
    this.#node = node;
    this.#outputIndex = index;
    if (this.#held) this.#held.node = node;
  }

  /** Whether no recorded op has made it. */
  get isLeaf(): boolean {
    return this.#node === null;
  }

  get requiresGrad(): boolean {
    return this.gradientEdge !== null;
  }

  /** Where this tensor's gradient goes on the tape: an op's entry, its own leaf entry, or nowhere. @internal */
  get gradientEdge(): Edge | null {
    if (this.#node !== null) return this.#node;
    tracing.active?.requirementRead(this);
    return this.#leaf;
  }

  /** Makes this leaf collect gradients in `grad`, or stop doing so. */
  requiresGrad_(requires = true): this {
    this.#assertNotDisposed('requiresGrad_');
    checkFlag('requiresGrad_', 'whether a gradient is required', requires);
    if (this.#node) {
      throw new AutogradError(
        `requiresGrad_: a tensor ${formatShape(this.shape)} made by ${this.#node.op.name} is no leaf; detach() it first.`,
      );
    }
    if (requires && !isFloatingPoint(this.dtype)) {
      throw new DTypeError(
        `requiresGrad_: only floating-point tensors have gradients, this one is ${this.dtype}.`,
      );
    }
    if (requires === (this.#leaf !== null)) return this;
    tracing.active?.requirementSet(this, !requires);
    const { parameters } = this.storage;
    const region = extentOf(this);
    if (requires) parameters.add(region);
    else parameters.remove(region);
    if (this.#held) this.#held.region = requires ? region : null;
    [this.#leaf, this.#frozenLeaf] = requires
      ? [this.#frozenLeaf ?? new LeafNode(this), null]
      : [null, this.#leaf];
    if (this.storage.isWatched) watchedChanges.handles++;
    return this;
  }

  /**
   * Calls `hook` after each backward pass has added its last contribution to `grad` of this leaf; data parallelism starts its
   * all-reduce there. Its second argument is whether the gradient had to be copied into the buffer of `setGradientBuffer`.
   * Returns a function that removes the hook.
   */
  onGradientAccumulated(hook: GradientHook, options: HookOptions = {}): () => void {
    if (!this.#leaf) {
      throw new AutogradError(
        'onGradientAccumulated: hooks are for leaves that require a gradient; call requiresGrad_() first.',
      );
    }
    checkFunction('onGradientAccumulated', 'the hook', hook);
    const { hooks } = this.#leaf;
    hooks.set(hook, checkedHookOptions('onGradientAccumulated', options));
    const noteChange = () => {
      if (this.storage.isWatched) watchedChanges.gradients++;
    };
    noteChange();
    return () => {
      hooks.delete(hook);
      noteChange();
    };
  }

  /**
   * Makes backward passes write the gradient of this leaf to `buffer`, such as a slice of a flat one: if `grad` is null, a
   * pass writes there and makes `grad` a handle to it; if there is a `grad`, it adds to that as always. Meanwhile the buffer
   * may hold part of a gradient.
   *
   * Products (`matmul`, `linear`), `embedding`, `rmsNorm` and `layerNorm` write the gradients of their parameters there
   * directly, and further uses of a parameter add to that. Gradients of other ops, such as those summed over broadcast
   * dimensions, are made elsewhere and copied; so are all gradients if the buffer is not aligned to 16 bytes or the function
   * is being compiled.
   *
   * The buffer remains the caller's, who must keep it alive; null removes it. Throws an AutogradError for a tensor that
   * collects no gradient, and a ShapeError, DTypeError or DeviceError for a buffer that is not contiguous or not like it.
   */
  setGradientBuffer(buffer: Tensor | null): void {
    const leaf = this.#leaf ?? (buffer === null ? this.#frozenLeaf : null);
    if (!leaf) {
      throw new AutogradError(
        'setGradientBuffer: only leaves that require a gradient collect one; call requiresGrad_() first.',
      );
    }
    if (buffer !== null) this.#checkGradientBuffer(buffer);
    leaf.gradientBuffer = buffer;
    if (this.storage.isWatched) watchedChanges.gradients++;
  }

  /** The buffer of `setGradientBuffer`; null for none. */
  get gradientBuffer(): Tensor | null {
    return this.#leaf?.gradientBuffer ?? null;
  }

  /** Those of `onGradientAccumulated`. @internal */
  get gradientHooks(): readonly GradientHook[] {
    return this.#leaf === null || this.#leaf.hooks.size === 0 ? noHooks : [...this.#leaf.hooks.keys()];
  }

  #checkGradientBuffer(buffer: Tensor): void {
    if (!(buffer instanceof Tensor))
      throw wrongArgument('setGradientBuffer', 'the buffer', 'a tensor or null', buffer);
    buffer.assertAlive('setGradientBuffer');
    const [own, given] = [this, buffer].map(({ shape }) => formatShape(shape));
    if (own !== given || !buffer.isContiguous) {
      throw new ShapeError(
        `setGradientBuffer: the gradient of ${own} needs a contiguous buffer of that shape, not ` +
          `${buffer.isContiguous ? '' : 'a strided view '}${given}.`,
      );
    }
    if (buffer.dtype !== this.dtype)
      throw new DTypeError(`setGradientBuffer: the gradient is ${this.dtype}, the buffer ${buffer.dtype}.`);
    if (buffer.device !== this.device) {
      throw new DeviceError(
        `setGradientBuffer: the gradient is on ${this.device.label}, the buffer on ${buffer.device.label}.`,
      );
    }
  }

  protected override ownershipChanged(isOwned: boolean): void {
    if (this.#disposed) return;
    if (isOwned) this.#stopWatching();
    else this.#held = watchForLeak(this, this.#leaf && extentOf(this));
  }

  /** Drops this handle's reference to the storage. Disposing twice is harmless. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#stopWatching();
    if (this.#leaf) this.storage.parameters.remove(extentOf(this));
    this.storage.dropHandle();
    this.storage.release();
    this.#node?.release();
    if (this.#ownsGrad) this.#grad!.dispose();
    this.#grad = null;
  }

  #stopWatching(): void {
    if (this.#held) stopWatching(this.#held);
    this.#held = null;
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Throws a DisposedError if this handle has been disposed; `op` is named in it. Memory that was let go is brought back. */
  assertAlive(op: string): void {
    this.#assertNotDisposed(op);
    if (this.storage.isAway) this.storage.bringBack();
  }

  #assertNotDisposed(op: string): void {
    if (this.#disposed) {
      throw new DisposedError(
        `${op}: a tensor ${formatShape(this.shape)} ${this.dtype} was used after it had been disposed. ` +
          'Return it from its scope, or keep() it.',
      );
    }
  }
}

/** Frees tensors that nothing uses first where they take much, or all, of the memory. */
function allocateStorage(device: Device, byteLength: number): Storage {
  // What is being compiled sees each tensor that is freed.
  const mayFree = tracing.active === null;
  if (mayFree && isCrowded(device)) freeGarbage(device);
  try {
    return new Storage(device, byteLength);
  } catch (error) {
    if (!(error instanceof OutOfMemoryError) || !mayFree || freeGarbage(device) === 0) throw error;
    return new Storage(device, byteLength);
  }
}
