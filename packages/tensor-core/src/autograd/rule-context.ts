import type { TensorSpec } from '../base/memory-view.ts';
import type { GradientContext } from '../op/op.ts';
import { Tensor } from '../tensor/tensor.ts';
import type { SavedTensor, TapeNode } from '../tensor/tape/tape.ts';

/** A tape entry as its op's gradient rule sees it. */
export class RuleContext implements GradientContext<unknown> {
  readonly gradients: readonly (Tensor | null)[];
  // Arrow functions, because rules destructure the context.
  readonly input = (index: number): Tensor => restore(this.#node.savedInput(index));
  readonly output = (index: number): Tensor => restore(this.#node.savedOutput(index));
  readonly destination: (index: number) => Tensor | null;
  readonly #node: TapeNode;

  constructor(
    node: TapeNode,
    gradients: readonly (Tensor | null)[],
    destination: (index: number) => Tensor | null,
  ) {
    this.#node = node;
    this.gradients = gradients;
    this.destination = destination;
  }

  get attributes(): unknown {
    return this.#node.attributes;
  }

  get needs(): readonly boolean[] {
    return this.#node.needs;
  }

  get inputSpecs(): readonly TensorSpec[] {
    return this.#node.inputSpecs;
  }

  get outputSpecs(): readonly TensorSpec[] {
    return this.#node.outputSpecs;
  }
}

function restore({ storage, dtype, shape, strides, offset }: SavedTensor): Tensor {
  return new Tensor(storage.retain(), dtype, shape, strides, offset);
}
