import { RooflineError, Tensor, range, scope } from '@roofline/tensor-core';

/** A state that does not fit a module: names are missing or unknown, or shapes differ. */
export class StateError extends RooflineError {
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];

  constructor(message: string, missing: readonly string[] = [], unexpected: readonly string[] = []) {
    super('STATE', message);
    this.missing = missing;
    this.unexpected = unexpected;
  }
}

/**
 * A part of a model: parameters, children, and a calculation over them.
 *
 * Every public property that holds a tensor is a parameter; every one that holds a module, or an array of
 * modules, is a child. They are found in the order of their definition, and named in snake case as PyTorch
 * code writes them: `tokenEmbeddings.weight` is `token_embeddings.weight`. Keep tensors that are not parameters
 * in `#private` fields.
 */
export abstract class Module<Inputs extends readonly unknown[], Output> {
  #name = '';

  /** The calculation. Call `forward`, which frees what is made here and not returned, and names it. */
  protected abstract compute(...inputs: Inputs): Output;

  /** Runs the module in a scope and in a range of its name: its property's in its parent, or its class's. */
  forward(...inputs: Inputs): Output {
    if (this.#name === '') this.#nameFrom(this.constructor.name);
    return scope(() => range(this.#name, () => this.compute(...inputs)));
  }

  #nameFrom(name: string): void {
    this.#name = name;
    for (const [childName, child] of this.children()) child.#nameFrom(childName);
  }

  /** Direct children with their names; those of an array are named `layers.0`, `layers.1`... */
  *children(): Generator<[name: string, module: Module<never, unknown>]> {
    for (const [property, value] of Object.entries(this)) {
      const name = snakeCase(property);
      if (value instanceof Module) yield [name, value];
      else if (Array.isArray(value)) {
        for (const [i, item] of value.entries()) if (item instanceof Module) yield [`${name}.${i}`, item];
      }
    }
  }

  /** All parameters with their full names, in the order of definition. */
  *namedParameters(prefix = ''): Generator<[name: string, parameter: Tensor]> {
    for (const [property, value] of Object.entries(this)) {
      if (value instanceof Tensor) yield [prefix + snakeCase(property), value];
    }
    for (const [name, child] of this.children()) yield* child.namedParameters(`${prefix}${name}.`);
  }

  /** All parameters, in the order of definition. */
  *parameters(): Generator<Tensor> {
    for (const [, parameter] of this.namedParameters()) yield parameter;
  }

  /** The parameters themselves by their names, not copied. */
  stateDict(): Record<string, Tensor> {
    return Object.fromEntries(this.namedParameters());
  }

  /** Forgets all gradients; their memory is given back. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  /** Frees all parameters, and their gradients. */
  dispose(): void {
    for (const parameter of this.parameters()) parameter.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

function snakeCase(property: string): string {
  return property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
