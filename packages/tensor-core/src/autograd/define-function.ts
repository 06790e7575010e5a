import { checkFunction, checkOptions, checkText } from '@roofline/cuda/host';
import { AutogradError } from '../base/errors.ts';
import type { GradientContext } from '../op/op.ts';
import { requireTensor } from '../op/require-tensor.ts';
import { isFloatingPoint } from '../base/dtype.ts';
import { currentScope, scope } from '../tensor/lifetime/scope.ts';
import { Tensor } from '../tensor/tensor.ts';
import { isGradEnabled, noGrad } from '../tensor/tape/grad-mode.ts';
import { TapeNode } from '../tensor/tape/tape.ts';
import type { DifferentiableOp } from '../tensor/tape/save-plan.ts';

/** What a function's forward and backward share. */
export interface FunctionContext {
  /** Keeps tensors for `backward`; they are freed with the tape. Call it in `forward`. */
  save(...tensors: Tensor[]): void;
  /** In `backward`: handles, freed when it returns, to what was saved. */
  readonly saved: readonly Tensor[];
  /** Whether the gradient of each input is wanted. */
  readonly needs: readonly boolean[];
}

/** What `defineFunction` takes. */
export interface FunctionDefinition<Outputs extends Tensor | readonly Tensor[]> {
  /** For errors and profiles. */
  readonly name: string;
  /** Runs without recording. */
  forward(context: FunctionContext, ...inputs: Tensor[]): Outputs;
  /**
   * Runs without recording, inside a scope, once the gradients of the outputs have come (null where none did). Returns the
   * gradient of each input, of its shape; null for none. A function of one input may return it without a list.
   */
  backward(
    context: FunctionContext,
    ...gradients: (Tensor | null)[]
  ): Tensor | null | readonly (Tensor | null)[];
}

/**
 * A differentiable function of tensors with its own forward and backward, as torch.autograd.Function. Call `enableGrad` in
 * `backward` to run a forward and backward pass inside it, as `checkpoint` does. Calls throw an AutogradError if `backward`
 * returns another number of gradients than there are inputs, and a DTypeError for arguments that are not tensors. Tensors of
 * others that either returns stay theirs.
 */
export function defineFunction<Outputs extends Tensor | readonly Tensor[]>(
  definition: FunctionDefinition<Outputs>,
): (...inputs: Tensor[]) => Outputs {
  checkOptions('defineFunction', definition, ['name', 'forward', 'backward']);
  const { name } = definition;
  checkText('defineFunction', 'the name', name);
  checkFunction('defineFunction', 'forward', definition.forward);
  checkFunction('defineFunction', 'backward', definition.backward);
  return (...inputs) => {
    for (const input of inputs) {
      requireTensor(name, input);
      input.assertAlive(name);
    }
    const records = isGradEnabled() && inputs.some((input) => input.requiresGrad);
    return scope(() => {
      const saved: Tensor[] = [];
      const needs = inputs.map((input) => records && input.requiresGrad);
      const context = { needs, saved: [], save: (...tensors: Tensor[]) => void saved.push(...tensors) };
      const result = noGrad(() => definition.forward(context, ...inputs));
      const list = result instanceof Tensor || !Array.isArray(result) ? [result as Tensor] : result;
      for (const tensor of [...list, ...saved]) requireTensor(`${name}: forward`, tensor);
      const outputs = list.map((output, i) => ownHandle(output, list.indexOf(output) === i));
      if (records && outputs.some(({ dtype }) => isFloatingPoint(dtype))) {
        const op = tapeOpOf(definition, inputs.length, saved.length);
        TapeNode.record(op, undefined, inputs, [...inputs, ...saved], outputs);
      }
      return (result instanceof Tensor ? outputs[0]! : outputs) as Outputs;
    });
  };
}

/**
 * An output that was not made in this call, or has a history, or was returned already, needs a new handle: its history is this
 * call, and its lifetime the caller's.
 */
function ownHandle(output: Tensor, isFirst: boolean): Tensor {
  const isOwn = output.scope === currentScope() && !output.requiresGrad && isFirst;
  return isOwn ? output : output.detach();
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
    gradient: ({ gradients, needs, input }: GradientContext<undefined>) => {
      let saved: readonly Tensor[] | null = null;
      const context: FunctionContext = {
        needs,
        // Once it is asked for, so that a function may have its own word on a second pass.
        get saved() {
          return (saved ??= savedIndices.map(input));
        },
        save: refuseSaving(name),
      };
      const result = backward(context, ...gradients);
      const list = Array.isArray(result) ? result : [result as Tensor | null];
      for (const gradient of list) if (gradient !== null) requireTensor(`${name}: backward`, gradient);
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
