import { checkFlag, checkFunction, checkOptions } from '@roofline/cuda/host';
import { withoutAutocast } from '../op/autocast/autocast.ts';
import { AutogradError } from '../base/errors.ts';
import { requireTensor } from '../op/require-tensor.ts';
import { RuleContext } from './rule-context.ts';
import { add } from '../ops/elementwise/arithmetic.ts';
import { copy } from '../ops/copy/contiguous.ts';
import { addInPlace, copyInPlace, fillInPlace } from '../ops/copy/in-place.ts';
import { ReopenedRanges } from '../tensor/ranges/reopened-ranges.ts';
import { currentScope, keep, scope } from '../tensor/lifetime/scope.ts';
import { formatShape } from '../base/shape.ts';
import {
  type Edge,
  type HookOptions,
  LeafNode,
  Tensor,
  checkedHookOptions,
  edgesOf,
} from '../tensor/tensor.ts';
import { dependOn, tracing } from '../tensor/tracing.ts';
import { noGrad } from '../tensor/tape/grad-mode.ts';
import { cameElsewhere, checkSeed, matchSpec } from './match-spec.ts';
import type { TapeNode } from '../tensor/tape/tape.ts';

/** Options of `backward`. */
export interface BackwardOptions {
  /** Whether to keep what the forward pass saved, so that backward can run again. */
  retainGraph?: boolean;
}

/**
 * Adds the gradient of `root` to the `grad` of every leaf that it depends on. `gradient` is the gradient of `root` itself, of
 * its shape, and is cast to its dtype; for a single element it defaults to 1. Frees what the tape saved.
 *
 * Reverse-mode automatic differentiation over the recorded tape (Griewank & Walther, 2008, chapter 3). Throws an AutogradError
 * for a tensor without history, or one whose history was freed or overwritten, a ShapeError or DeviceError for a gradient
 * whose shape or device is not its tensor's, and a RooflineError (code OPTION) for unknown options.
 */
export function backward(root: Tensor, gradient?: Tensor, options: BackwardOptions = {}): void {
  requireTensor('backward', root);
  if (gradient !== undefined) requireTensor('backward', gradient);
  checkOptions('backward', options, ['retainGraph']);
  const { retainGraph = false } = options;
  checkFlag('backward', 'retainGraph', retainGraph);
  root.assertAlive('backward');
  gradient?.assertAlive('backward');
  const start = root.gradientEdge;
  if (!start) {
    throw new AutogradError(
      `backward: the tensor ${formatShape(root.shape)} does not depend on anything that requires a gradient, ` +
        'or was made inside noGrad().',
    );
  }
  checkSeed(root, gradient);
  const run = () => {
    const seed = gradient ? matchSpec('backward', gradient, root) : ones(root);
    new BackwardPass(retainGraph).run(start, root.outputIndex, seed);
  };
  depth++;
  try {
    // In the dtypes of the forward pass, wherever this is called.
    withoutAutocast(() => noGrad(() => scope(run)));
    if (depth > 1) return;
    if (dependOn(hasHookThatCannotCompile)) refuseHook('a hook runs when a backward pass has ended');
    callAll(finishedHooks.keys());
  } catch (error) {
    if (depth === 1) callAll(failedHooks);
    throw error;
  } finally {
    depth--;
  }
}

/** How many backward passes are running: a rule may run one of its own, as activation checkpointing does. */
let depth = 0;

/** Whether a backward pass is running. */
export function isBackwardRunning(): boolean {
  return depth > 0;
}

const finishedHooks = new Map<() => void, Required<HookOptions>>();
const failedHooks = new Set<() => void>();

function hasHookThatCannotCompile(): boolean {
  return [...finishedHooks.values()].some(({ compiles }) => !compiles);
}

function callAll(hooks: Iterable<() => void>): void {
  for (const hook of [...hooks]) noGrad(hook);
}

/**
 * Calls `hook`, inside noGrad, whenever an outermost backward pass has delivered its last gradient; data parallelism waits
 * there for what it sent during the pass. If the pass, or such a hook, fails, `onFailed` is called instead of it or after it;
 * its errors take precedence over the pass's. A hook that `compiles` is added during the pass, by a gradient's hook that compiles
 * too. Returns a function that removes both.
 */
export function onBackwardFinished(
  hook: () => void,
  onFailed?: () => void,
  options: HookOptions = {},
): () => void {
  checkFunction('onBackwardFinished', 'the hook', hook);
  if (onFailed !== undefined) checkFunction('onBackwardFinished', 'the hook of failures', onFailed);
  finishedHooks.set(hook, checkedHookOptions('onBackwardFinished', options));
  if (onFailed) failedHooks.add(onFailed);
  return () => {
    finishedHooks.delete(hook);
    if (onFailed) failedHooks.delete(onFailed);
  };
}

function ones(root: Tensor): Tensor {
  const seed = Tensor.allocate(root.device, root.dtype, root.shape);
  fillInPlace(seed, 1);
  return seed;
}

/** Gradients on their way to one edge. */
interface Arrivals {
  /** Contributions still to come. */
  pending: number;
  gradients: (Tensor | null)[];
}

/** Null for each output; a leaf has one. */
function noGradients(edge: Edge): null[] {
  return new Array<null>(edge instanceof LeafNode ? 1 : edge.outputCount).fill(null);
}

class BackwardPass {
  readonly #retainGraph: boolean;
  readonly #arrivals = new Map<Edge, Arrivals>();
  readonly #ready: Edge[] = [];
  readonly #ranges = new ReopenedRanges({ without: 'forward' });

  constructor(retainGraph: boolean) {
    this.#retainGraph = retainGraph;
  }

  run(start: Edge, output: number, seed: Tensor): void {
    this.#countContributions(start);
    this.#arrivals.get(start)!.gradients[output] = borrow(seed);
    this.#ready.push(start);
    try {
      for (let edge = this.#ready.pop(); edge; edge = this.#ready.pop()) this.#visit(edge);
    } catch (error) {
      this.#freeUnvisited();
      throw error;
    }
  }

  /** After a pass that failed, in a rule or a hook, frees the rest of the graph. */
  #freeUnvisited(): void {
    for (const edge of this.#arrivals.keys()) {
      if (edge instanceof LeafNode) this.#freeBuffer(edge);
      else if (!this.#retainGraph) edge.freeSaved();
    }
  }

  /** Counts how many gradients will reach each edge: an entry runs after the last has. */
  #countContributions(start: Edge): void {
    this.#arrivals.set(start, { pending: 0, gradients: noGradients(start) });
    const stack: Edge[] = [start];
    for (let edge = stack.pop(); edge; edge = stack.pop()) {
      if (edge instanceof LeafNode) continue;
      for (const next of edgesOf(edge)) {
        if (!next) continue;
        const known = this.#arrivals.get(next);
        if (known) known.pending++;
        else {
          this.#arrivals.set(next, { pending: 1, gradients: noGradients(next) });
          stack.push(next);
        }
      }
    }
  }

  #visit(edge: Edge): void {
    const { gradients } = this.#arrivals.get(edge)!;
    if (edge instanceof LeafNode) {
      this.#arrivals.delete(edge);
      try {
        if (gradients[0]) this.#accumulate(edge, gradients[0]);
      } finally {
        this.#freeBuffer(edge);
      }
      return;
    }
    dependOnSaved(edge);
    const inputs = gradients.some((gradient) => gradient)
      ? this.#ranges.run(edge.range, () =>
          differentiate(edge, gradients, (input) => this.#destination(edge, input)),
        )
      : null;
    this.#arrivals.delete(edge);
    for (const gradient of gradients) gradient?.dispose();
    if (!this.#retainGraph) edge.freeSaved();
    const edges = edgesOf(edge);
    for (let i = 0; i < edges.length; i++) {
      const next = edges[i];
      if (next) this.#deliver(next, edge.edgeOutput(i), inputs?.[i] ?? null);
    }
  }

  #deliver(edge: Edge, output: number, gradient: Tensor | null): void {
    const arrivals = this.#arrivals.get(edge)!;
    if (gradient) {
      const before = arrivals.gradients[output];
      arrivals.gradients[output] = before ? this.#sumInto(edge, before, gradient) : gradient;
    }
    if (--arrivals.pending === 0) this.#ready.push(edge);
  }

  /**
   * The buffer of the leaf that is input `index` of an entry, for its first gradient. It is given out once: another pass
   * inside this one, as in a checkpoint, must not overwrite it.
   */
  #destination(node: TapeNode, index: number): Tensor | null {
    const leaf = edgesOf(node)[index];
    if (!(leaf instanceof LeafNode) || leaf.gradientBuffer === null || leaf.bufferWriter !== null)
      return null;
    const { tensor, gradientBuffer } = leaf;
    const isWanted = !tensor.isDisposed && tensor.requiresGrad && !gradientBuffer.isDisposed;
    // The compiler decides itself where gradients lie.
    if (!isWanted || tracing.active || tensor.grad || this.#arrivals.get(leaf)!.gradients[0]) return null;
    leaf.bufferWriter = this;
    return gradientBuffer;
  }

  #freeBuffer(leaf: LeafNode): void {
    if (leaf.bufferWriter === this) leaf.bufferWriter = null;
  }

  /** The sum, written into `target` if nothing else can see that. */
  #sumInto(edge: Edge, target: Tensor, addend: Tensor): Tensor {
    const isInBuffer = edge instanceof LeafNode && edge.bufferWriter === this && liesInBuffer(edge, target);
    if (isInBuffer || isExclusive(target)) {
      addInPlace(target, addend);
      addend.dispose();
      return target;
    }
    const sum = add(target, addend);
    target.dispose();
    addend.dispose();
    return sum;
  }

  #accumulate(leaf: LeafNode, gradient: Tensor): void {
    const { tensor, hooks } = leaf;
    // No one can read the gradient of a disposed leaf, or wants that of one that no longer requires it.
    if (tensor.isDisposed || !tensor.requiresGrad) {
      gradient.dispose();
      return;
    }
    // If one is set later, the specialization no longer fits: see hasSuchGradient.
    if ([...hooks.values()].some(({ compiles }) => !compiles))
      refuseHook('a hook runs when a gradient has come, as data parallelism has them');
    if (gradient.device !== tensor.device) throw cameElsewhere(gradient, tensor);
    let wasCopied = false;
    if (tensor.grad) {
      addInPlace(tensor.grad, gradient);
      gradient.dispose();
    } else if (leaf.gradientBuffer && (leaf.bufferWriter ?? this) === this) {
      wasCopied = !liesInBuffer(leaf, gradient);
      if (wasCopied) copyInPlace(leaf.gradientBuffer, gradient);
      else leaf.gradientBuffer.assertAlive('backward');
      tensor.grad = keep(borrow(leaf.gradientBuffer));
      gradient.dispose();
    } else {
      tensor.grad = keep(isExclusive(gradient) ? gradient : copy(gradient));
      if (tensor.grad !== gradient) gradient.dispose();
    }
    for (const hook of [...hooks.keys()]) hook(tensor, wasCopied);
  }
}

/** Refuses hooks while a function is being compiled, whose replays would not run them. */
function refuseHook(what: string): void {
  tracing.active?.refuse(what, 'Call backward() outside, or compile a model without hooks');
}

/**
 * Replays neither free nor check what an op before a compiled function has saved, so a change there makes the function run
 * again.
 */
function dependOnSaved(node: TapeNode): void {
  if (!tracing.active || node.trace === tracing.active || node.saved.length === 0) return;
  dependOn(() => node.hasSavedStill);
}

/** A new handle to the same elements. */
function borrow(tensor: Tensor): Tensor {
  return new Tensor(tensor.storage.retain(), tensor.dtype, tensor.shape, tensor.strides, tensor.offset);
}

/** The gradients of an entry's inputs. Everything else that its rule makes is freed. */
function differentiate(
  node: TapeNode,
  gradients: readonly (Tensor | null)[],
  destination: (input: number) => Tensor | null,
): (Tensor | null)[] {
  return scope(() => {
    const context = new RuleContext(node, gradients, destination);
    const results = node.op.gradient!(context as never) as readonly (Tensor | null)[];
    const { needs } = node;
    const matched = new Array<Tensor | null>(needs.length).fill(null);
    for (let i = 0; i < needs.length; i++) {
      const result = results[i];
      if (!needs[i] || !result) continue;
      const fitting = matchSpec(node.op.name, result, node.inputSpec(i));
      // A rule may pass its own gradient on, or a tensor that lives elsewhere; each receiver gets its own handle.
      const isOwn = fitting.scope === currentScope() && !matched.includes(fitting);
      matched[i] = isOwn ? fitting : borrow(fitting);
    }
    return matched;
  });
}

/** Whether nothing else sees the tensor's memory, and it fills it: a slice would keep the whole alive. */
function isExclusive({ storage, isContiguous, byteLength }: Tensor): boolean {
  return storage.references === 1 && isContiguous && storage.byteLength === byteLength;
}

/** Whether a tensor is a handle to exactly the buffer for a leaf's gradient. */
function liesInBuffer({ gradientBuffer }: LeafNode, { storage, offset, isContiguous }: Tensor): boolean {
  if (gradientBuffer === null || !isContiguous) return false;
  return storage === gradientBuffer.storage && offset === gradientBuffer.offset;
}
