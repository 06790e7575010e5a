import { AutogradError } from '../../base/errors.ts';
import type { TensorSpec } from '../../base/memory-view.ts';
import { currentOpenRange } from '../ranges/range.ts';
import { type DType, isFloatingPoint } from '../../base/dtype.ts';
import { extentOf } from '../storage/extent.ts';
import { type Shape, formatShape } from '../../base/shape.ts';
import type { Storage } from '../storage/storage.ts';
import { tracing } from '../tracing.ts';
import { type DifferentiableOp, type Plan, planOf } from './save-plan.ts';

/** What the tape needs of a tensor. */
interface TapedTensor {
  readonly storage: Storage;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
  readonly offset: number;
  /** A `TapeNode`, a leaf's own entry, or nothing. */
  readonly gradientEdge: object | null;
  readonly outputIndex: number;
  setHistory(node: TapeNode, index: number): void;
}

/** A tensor kept for the backward pass: a counted reference to its storage, and its layout. */
export interface SavedTensor {
  readonly storage: Storage;
  readonly version: number;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
  readonly offset: number;
}

function save(tensor: TapedTensor): SavedTensor {
  const { storage, dtype, shape, strides, offset } = tensor;
  return { storage: storage.retain(), version: storage.version, dtype, shape, strides, offset };
}

function wasWritten(saved: SavedTensor): boolean {
  const { storage, version } = saved;
  return storage.version !== version && storage.writtenSince(version, extentOf(saved));
}

const firstOutputs: readonly number[] = [];
const nothingSaved: readonly SavedTensor[] = [];

/**
 * One recorded call. It is reference-counted like storages: each live output handle and each later entry with an edge to it
 * holds one reference; what was saved is freed with the last, or by the backward pass.
 */
export class TapeNode {
  readonly op: DifferentiableOp;
  readonly attributes: unknown;
  /** Where the gradient of each input goes: a `TapeNode`, or the entry of a leaf. */
  readonly edges: readonly (object | null)[];
  /** The innermost range that the call ran in. */
  readonly range = currentOpenRange();
  /** The compiled function that was being traced; null outside of one. */
  readonly trace = tracing.active;
  readonly #plan: Plan;
  /** For each input, which output of its edge it was; empty if all were the first. */
  readonly #edgeOutputs: readonly number[];
  /** Shape and dtype of each input, then of each output: flat, because an eager op should allocate little. */
  readonly #specs: (Shape | DType)[];
  /** In the order of the plan: inputs, then outputs. Null once freed. */
  #saved: readonly SavedTensor[] | null;
  #references = 0;

  /**
   * Records a call on the tape: its outputs' history is then this entry. `operands` are what the op worked on: `inputs`, or
   * casts of them. Gradients go to the inputs, in their dtypes; outputs that are not floating-point have none.
   */
  static record(
    op: DifferentiableOp,
    attributes: unknown,
    inputs: readonly TapedTensor[],
    operands: readonly TapedTensor[],
    outputs: readonly TapedTensor[],
  ): TapeNode {
    const node = new TapeNode(op, attributes, inputs, operands, outputs);
    for (let i = 0; i < outputs.length; i++) {
      if (isFloatingPoint(outputs[i]!.dtype)) outputs[i]!.setHistory(node, i);
    }
    return node;
  }

  private constructor(
    op: DifferentiableOp,
    attributes: unknown,
    inputs: readonly TapedTensor[],
    operands: readonly TapedTensor[],
    outputs: readonly TapedTensor[],
  ) {
    this.op = op;
    this.attributes = attributes;
    const edges = new Array<object | null>(inputs.length);
    const specs = new Array<Shape | DType>(2 * (inputs.length + outputs.length));
    let edgeOutputs = firstOutputs;
    for (let i = 0; i < inputs.length; i++) {
      const input = inputs[i]!;
      const edge = (edges[i] = input.gradientEdge);
      if (edge instanceof TapeNode) edge.retain();
      if (input.outputIndex > 0 && edgeOutputs === firstOutputs) {
        edgeOutputs = inputs.map(({ outputIndex }) => outputIndex);
      }
      specs[2 * i] = input.shape;
      specs[2 * i + 1] = input.dtype;
    }
    for (let i = 0, at = 2 * inputs.length; i < outputs.length; i++) {
      specs[at++] = outputs[i]!.shape;
      specs[at++] = outputs[i]!.dtype;
    }
    this.edges = edges;
    this.#edgeOutputs = edgeOutputs;
    this.#specs = specs;
    try {
      this.#plan = planOf(op, edges, operands.length, outputs.length);
      this.#saved = this.#save(operands, outputs);
    } catch (error) {
      for (const edge of edges) if (edge instanceof TapeNode) edge.release();
      throw error;
    }
  }

  #save(operands: readonly TapedTensor[], outputs: readonly TapedTensor[]): readonly SavedTensor[] {
    const { savedInputs, savedOutputs } = this.#plan;
    const inputs = savedInputs.length;
    if (inputs + savedOutputs.length === 0) return nothingSaved;
    const saved = new Array<SavedTensor>(inputs + savedOutputs.length);
    let done = 0;
    try {
      for (let i = 0; i < inputs; i++, done++) saved[i] = save(operands[savedInputs[i]!]!);
      for (let i = 0; i < savedOutputs.length; i++, done++)
        saved[inputs + i] = save(outputs[savedOutputs[i]!]!);
    } catch (error) {
      for (let i = 0; i < done; i++) saved[i]!.storage.release();
      throw error;
    }
    return saved;
  }

  /** Whether the gradient of each input is wanted. */
  get needs(): readonly boolean[] {
    return this.#plan.needs;
  }

  /** Which output of its edge input `index` was. */
  edgeOutput(index: number): number {
    return this.#edgeOutputs[index] ?? 0;
  }

  inputSpec(index: number): TensorSpec {
    return { shape: this.#specs[2 * index] as Shape, dtype: this.#specs[2 * index + 1] as DType };
  }

  get inputSpecs(): readonly TensorSpec[] {
    return this.edges.map((_, i) => this.inputSpec(i));
  }

  get outputCount(): number {
    return this.#specs.length / 2 - this.edges.length;
  }

  get outputSpecs(): readonly TensorSpec[] {
    return Array.from({ length: this.outputCount }, (_, i) => this.inputSpec(this.edges.length + i));
  }

  /** Everything saved and not freed yet, each with the entry that it came from; null for what needs no gradient. */
  get saved(): readonly { tensor: SavedTensor; source: object | null }[] {
    const { savedInputs } = this.#plan;
    return (this.#saved ?? []).map((tensor, i) => ({
      tensor,
      source: i < savedInputs.length ? (this.edges[savedInputs[i]!] ?? null) : this,
    }));
  }

  /** Whether what was saved has neither been freed nor written since. */
  get hasSavedStill(): boolean {
    return this.#saved !== null && !this.#saved.some(wasWritten);
  }

  savedInput(index: number): SavedTensor {
    return this.#require('input', index, this.#plan.savedInputs.indexOf(index));
  }

  savedOutput(index: number): SavedTensor {
    const { savedInputs, savedOutputs } = this.#plan;
    const position = savedOutputs.indexOf(index);
    return this.#require('output', index, position < 0 ? -1 : savedInputs.length + position);
  }

  retain(): this {
    this.#references++;
    return this;
  }

  /** Iterative, because a chain of entries can be longer than the call stack is deep. */
  release(): void {
    if (--this.#references > 0) return;
    const pending: TapeNode[] = [];
    this.#free(pending);
    for (let node = pending.pop(); node; node = pending.pop()) node.#free(pending);
  }

  /** Frees what was saved, and adds entries without references left to `pending`. */
  #free(pending: TapeNode[]): void {
    this.freeSaved();
    for (let i = 0; i < this.edges.length; i++) {
      const edge = this.edges[i];
      if (edge instanceof TapeNode && --edge.#references === 0) pending.push(edge);
    }
  }

  /** Frees what was saved; the entry can then not run backward again. */
  freeSaved(): void {
    const saved = this.#saved;
    if (saved === null) return;
    this.#saved = null;
    for (let i = 0; i < saved.length; i++) saved[i]!.storage.release();
  }

  #require(role: string, index: number, position: number): SavedTensor {
    if (this.#saved === null) {
      throw new AutogradError(
        `backward: what ${this.op.name} saved has been freed by an earlier backward pass; ` +
          'pass { retainGraph: true } to that one. If it was that of a checkpoint, name what the checkpoint uses among its inputs.',
      );
    }
    const saved = this.#saved[position];
    if (!saved) {
      throw new AutogradError(
        `${this.op.name}: its gradient reads ${role} ${index}, which its \`saves\` does not name.`,
      );
    }
    if (wasWritten(saved)) {
      throw new AutogradError(
        `backward: ${role} ${index} ${formatShape(saved.shape)} of ${this.op.name} was written in place after it ` +
          'had been saved. Run backward before the optimizer step, or write to a copy.',
      );
    }
    return saved;
  }
}
