import { AutogradError } from '../errors.ts';
import { currentRange } from '../op/range.ts';
import { scope } from '../tensor/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import { isGradEnabled, noGrad } from './grad-mode.ts';
import { type DifferentiableOp, TapeNode } from './tape.ts';

/** What the forward and the backward of a function share. */
export interface FunctionContext {
  /** Keeps tensors for `backward`; they are freed with the graph. Call it in `forward`. */
  save(...tensors: Tensor[]): void;
  /** In `backward`: handles, freed when it returns, to what was saved. */
  readonly saved: readonly Tensor[];
  /** Whether the gradient of each input is wanted. */
  readonly needs: readonly boolean[];
}

export interface FunctionDefinition<Outputs extends Tensor | readonly Tensor[]> {
  /** For errors and profiles. */
  readonly name: string;
  /** Runs without recording. */
  forward(context: FunctionContext, ...inputs: Tensor[]): Outputs;
  /**
   * Runs without recording, inside a scope, when the gradients of the outputs are there (null where none came). Gives
   * the gradient of each input, of its shape; null for none. A function of one input may give it alone.
   */
  backward(
    context: FunctionContext,
    ...gradients: (Tensor | null)[]
  ): Tensor | null | readonly (Tensor | null)[];
}

/**
 * A differentiable function of tensors by a forward and a backward of one's own, as torch.autograd.Function. Call
 * `enableGrad` in `backward` to run a forward and backward pass inside it, as `checkpoint` does. Calls throw an
 * AutogradError where `backward` gives another number of gradients than there are inputs.
 */
export function defineFunction<Outputs extends Tensor | readonly Tensor[]>(
  definition: FunctionDefinition<Outputs>,
): (...inputs: Tensor[]) => Outputs {
  return (...inputs) => {
    for (const input of inputs) input.assertAlive(definition.name);
    const records = isGradEnabled() && inputs.some((input) => input.requiresGrad);
    return scope(() => {
      const saved: Tensor[] = [];
      const needs = inputs.map((input) => records && input.requiresGrad);
      const context = { needs, saved: [], save: (...tensors: Tensor[]) => void saved.push(...tensors) };
      const result = noGrad(() => definition.forward(context, ...inputs));
      const outputs = (result instanceof Tensor ? [result] : [...(result as readonly Tensor[])]).map(
        (output) => ownHandle(output, inputs),
      );
      if (records) {
        const op = tapeOpOf(definition, inputs.length, saved.length);
        TapeNode.record(op, undefined, inputs, [...inputs, ...saved], outputs, currentRange());
      }
      return (result instanceof Tensor ? outputs[0]! : outputs) as Outputs;
    });
  };
}

/** An output that is an input, or has a history, needs a handle of its own: its history is this call. */
function ownHandle(output: Tensor, inputs: readonly Tensor[]): Tensor {
  return inputs.includes(output) || output.requiresGrad ? output.detach() : output;
}

function tapeOpOf(
  { name, backward }: FunctionDefinition<Tensor | readonly Tensor[]>,
  inputCount: number,
  savedCount: number,
): DifferentiableOp {
  const savedIndices = Array.from({ length: savedCount }, (_, i) => inputCount + i);
  return {
    name,
    saves: () => ({ inputs: savedIndices }),
    gradient: ({ gradients, needs, input }) => {
      const context = { needs, saved: savedIndices.map(input), save: refuseSaving(name) };
      const result = backward(context, ...gradients);
      const list = result === null || result instanceof Tensor ? [result] : result;
      if (list.length !== inputCount) {
        throw new AutogradError(
          `${name}: backward gave ${list.length} gradients for ${inputCount} inputs; give one each, null for none.`,
        );
      }
      return list;
    },
  };
}

function refuseSaving(name: string): () => void {
  return () => {
    throw new AutogradError(`${name}: save() is for forward; in backward nothing would read it.`);
  };
}
