import type { TensorSpec } from '../op/memory-view.ts';
import type { DType } from '../tensor/dtype.ts';
import { AutogradError } from '../errors.ts';
import type { GradientContext, Saves } from '../op/op.ts';
import { type Shape, formatShape } from '../tensor/shape.ts';
import type { Storage } from '../tensor/storage.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** What the tape needs of an op, whatever its attributes. */
export interface DifferentiableOp {
  readonly name: string;
  saves?(needs: readonly boolean[], attributes: never): Saves;
  gradient?(context: GradientContext<never>): readonly (Tensor | null)[];
}

/** The end of the tape at a leaf: gradients that arrive here are added to `tensor.grad`. */
export class LeafNode {
  readonly tensor: Tensor;
  readonly hooks = new Set<(parameter: Tensor) => void>();

  constructor(tensor: Tensor) {
    this.tensor = tensor;
  }
}

/** A tensor kept for the backward pass: a counted reference to its storage, and how it lay in it. */
export interface SavedTensor {
  readonly storage: Storage;
  readonly version: number;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: Shape;
  readonly offset: number;
}

function save(tensor: Tensor): SavedTensor {
  const { storage, dtype, shape, strides, offset } = tensor;
  return { storage: storage.retain(), version: storage.version, dtype, shape, strides, offset };
}

function saveAll(
  indices: readonly number[] | undefined,
  tensors: readonly Tensor[],
): (SavedTensor | undefined)[] {
  const saved: (SavedTensor | undefined)[] = [];
  if (indices) for (const index of indices) saved[index] = save(tensors[index]!);
  return saved;
}

/**
 * One recorded call. It is counted like storages: each live output handle and each later entry that leads
 * here holds one reference; what was saved is freed with the last, or by the backward pass.
 */
export class TapeNode {
  readonly op: DifferentiableOp;
  readonly attributes: unknown;
  readonly needs: readonly boolean[];
  /** Where the gradient of each input goes. */
  readonly edges: readonly (TapeNode | LeafNode | null)[];
  readonly edgeOutputs: readonly number[];
  readonly inputSpecs: readonly TensorSpec[];
  readonly outputSpecs: readonly TensorSpec[];
  /** Names of the ranges that the call ran in, outermost first. */
  readonly range: readonly string[];
  #savedInputs: (SavedTensor | undefined)[];
  #savedOutputs: (SavedTensor | undefined)[];
  #references = 0;
  #freed = false;

  /**
   * Puts a call on the tape: its outputs then lead here. `operands` are what the op worked on: `inputs`, or
   * casts of them. Gradients go to the inputs, in their dtypes.
   */
  static record(
    op: DifferentiableOp,
    attributes: unknown,
    inputs: readonly Tensor[],
    operands: readonly Tensor[],
    outputs: readonly Tensor[],
    needs: readonly boolean[],
    range: readonly string[],
  ): void {
    const node = new TapeNode(op, attributes, inputs, operands, outputs, needs, range);
    outputs.forEach((output, i) => {
      output.node = node.retain();
      output.outputIndex = i;
    });
  }

  private constructor(
    op: DifferentiableOp,
    attributes: unknown,
    inputs: readonly Tensor[],
    operands: readonly Tensor[],
    outputs: readonly Tensor[],
    needs: readonly boolean[],
    range: readonly string[],
  ) {
    this.op = op;
    this.attributes = attributes;
    this.needs = needs;
    this.range = range;
    this.edges = inputs.map((input, i) => (needs[i] ? input.gradientEdge : null));
    this.edgeOutputs = inputs.map((input) => input.outputIndex);
    for (const edge of this.edges) if (edge instanceof TapeNode) edge.retain();
    this.inputSpecs = inputs.map(({ shape, dtype }) => ({ shape, dtype }));
    this.outputSpecs = outputs.map(({ shape, dtype }) => ({ shape, dtype }));
    const saves = op.saves?.(needs, attributes as never);
    this.#savedInputs = saveAll(saves?.inputs, operands);
    this.#savedOutputs = saveAll(saves?.outputs, outputs);
  }

  /** All that was saved and is not freed yet, each with the entry that it came from; null for what needs none. */
  get saved(): readonly { tensor: SavedTensor; source: TapeNode | LeafNode | null }[] {
    const inputs = this.#savedInputs.map((tensor, i) => tensor && { tensor, source: this.edges[i]! });
    const outputs = this.#savedOutputs.map((tensor) => tensor && { tensor, source: this });
    return [...inputs, ...outputs].filter((saved) => saved !== undefined);
  }

  savedInput(index: number): SavedTensor {
    return this.#require(this.#savedInputs[index], 'input', index);
  }

  savedOutput(index: number): SavedTensor {
    return this.#require(this.#savedOutputs[index], 'output', index);
  }

  retain(): this {
    this.#references++;
    return this;
  }

  /** Iterative, because a chain of entries can be longer than the call stack is deep. */
  release(): void {
    const pending: TapeNode[] = [this];
    for (let node = pending.pop(); node; node = pending.pop()) {
      if (--node.#references > 0) continue;
      node.freeSaved();
      for (const edge of node.edges) if (edge instanceof TapeNode) pending.push(edge);
    }
  }

  /** Frees what was saved; the entry can then not run backward again. */
  freeSaved(): void {
    if (this.#freed) return;
    this.#freed = true;
    for (const saved of this.#savedInputs) saved?.storage.release();
    for (const saved of this.#savedOutputs) saved?.storage.release();
    this.#savedInputs = [];
    this.#savedOutputs = [];
  }

  #require(saved: SavedTensor | undefined, role: string, index: number): SavedTensor {
    if (this.#freed) {
      throw new AutogradError(
        `backward: what ${this.op.name} saved has been freed by an earlier backward pass; ` +
          'pass { retainGraph: true } to that one.',
      );
    }
    if (!saved) {
      throw new AutogradError(
        `${this.op.name}: its gradient reads ${role} ${index}, which its \`saves\` does not name.`,
      );
    }
    if (saved.storage.version !== saved.version) {
      throw new AutogradError(
        `backward: ${role} ${index} ${formatShape(saved.shape)} of ${this.op.name} was written in place after it ` +
          'had been saved. Run backward before the optimizer step, or write to a copy.',
      );
    }
    return saved;
  }
}
