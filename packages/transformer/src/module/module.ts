import {
  type Device,
  RooflineError,
  Tensor,
  checkFlag,
  checkFunction,
  checkObject,
  checkOptions,
  checkText,
  copy,
  dependOn,
  describeValue,
  range,
  requireTensors,
  scope,
  toDevice,
} from '@roofline/tensor-core';
import { currentTrace } from '@roofline/tensor-core/kernel-api';
import { type StateMatch, type StateMatchOptions, matchState, overwriteParameters } from './state.ts';

/**
 * A part of a model: parameters, children, and a calculation over them.
 *
 * Every public property that holds a tensor is a parameter; every one that holds a module, or an array of
 * modules, is a child. They are found in the order of their definition, and named in snake case as PyTorch
 * code writes them: `tokenEmbeddings.weight` is `token_embeddings.weight`. Keep tensors that are not parameters
 * in `#private` fields.
 *
 * One tensor under two names is one tied parameter (Press & Wolf 2017): it is counted, trained and disposed of once.
 */
export abstract class Module<Inputs extends readonly unknown[], Output> {
  #name = '';
  #training = true;
  readonly #readTraining = () => this.#training;
  /** What `forward` runs. */
  #calculation = (...inputs: Inputs): Output => this.compute(...inputs);
  readonly #readCalculation = () => this.#calculation;
  /** What gives each of its parameters and children; null before the first call. */
  #partReads: readonly (() => unknown)[] | null = null;

  /** The calculation. Call `forward`, which frees what is made here and not returned, and names it. */
  protected abstract compute(...inputs: Inputs): Output;

  /** Runs the module in a scope and in a range of its name: its property's in its parent, or its class's. */
  forward(...inputs: Inputs): Output {
    return this.within(() => dependOn(this.#readCalculation)(...inputs));
  }

  /**
   * Has `forward` run `around` in place of the calculation, in the module's scope and range; `around` gets the calculation to call,
   * with these inputs or others. A later one goes around those before. `parallelize` of @roofline/collectives divides layers so.
   */
  wrap(around: (calculation: (...inputs: unknown[]) => unknown, ...inputs: unknown[]) => unknown): void {
    checkFunction('wrap', 'what goes around the calculation', around);
    const own = this.#calculation;
    const calculation = (...inputs: unknown[]) => own(...(inputs as unknown as Inputs));
    this.#calculation = (...inputs) => around(calculation, ...inputs) as Output;
  }

  /** Runs a calculation of the module as `forward` runs its whole one. */
  protected within<T>(fn: () => T): T {
    if (this.#name === '') this.#nameFrom(this.constructor.name);
    this.#partReads ??= [...partReadsOf(this)];
    // A compiled function that found others here is recorded again.
    for (const read of this.#partReads) dependOn(read);
    return scope(() => range(this.#name, fn));
  }

  #nameFrom(name: string): void {
    this.#name = name;
    for (const [childName, child] of this.children()) child.#nameFrom(childName);
  }

  /** Direct children with their names; those of an array are named `layers.0`, `layers.1`... */
  *children(): Generator<[name: string, module: AnyModule]> {
    for (const [property, value] of Object.entries(this)) {
      if (value instanceof Module) yield [snakeCase(property), value];
      else if (Array.isArray(value)) {
        const name = snakeCase(property);
        for (const [i, item] of value.entries()) if (item instanceof Module) yield [`${name}.${i}`, item];
      }
    }
  }

  /**
   * This module under `prefix`, then all modules inside it with their full names, each once, in the order of
   * definition.
   */
  namedModules(prefix = ''): Generator<[name: string, module: AnyModule]> {
    checkText('namedModules', 'the prefix', prefix);
    return this.#modulesUnder(prefix, new Set());
  }

  *#modulesUnder(prefix: string, seen: Set<AnyModule>): Generator<[name: string, module: AnyModule]> {
    if (seen.has(this)) return;
    seen.add(this);
    yield [prefix, this];
    for (const [name, child] of this.children()) yield* child.#modulesUnder(joinNames(prefix, name), seen);
  }

  /**
   * All parameters with their full names, in the order of definition: a tied one once, under its first name,
   * unless `removeDuplicate` is false. Throws a RooflineError (code PARAMETERS) for two parameters of one name.
   */
  namedParameters(
    prefix = '',
    options: NamedParametersOptions = {},
  ): Generator<[name: string, parameter: Tensor]> {
    checkText('namedParameters', 'the prefix', prefix);
    checkOptions('namedParameters', options, ['removeDuplicate']);
    const { removeDuplicate = true } = options;
    checkFlag('namedParameters', 'removeDuplicate', removeDuplicate);
    return this.#parametersUnder(prefix, removeDuplicate);
  }

  *#parametersUnder(prefix: string, removeDuplicate: boolean): Generator<[name: string, parameter: Tensor]> {
    const seen = new Set<Tensor>();
    const byName = new Map<string, Tensor>();
    for (const [name, parameter] of this.#everyName(prefix)) {
      if ((byName.get(name) ?? parameter) !== parameter) throw twoOfOneName(name);
      byName.set(name, parameter);
      if (removeDuplicate && seen.has(parameter)) continue;
      seen.add(parameter);
      yield [name, parameter];
    }
  }

  *#everyName(prefix: string): Generator<[name: string, parameter: Tensor]> {
    for (const [property, value] of Object.entries(this)) {
      if (value instanceof Tensor) yield [joinNames(prefix, snakeCase(property)), value];
    }
    for (const [name, child] of this.children()) yield* child.#everyName(joinNames(prefix, name));
  }

  /** All parameters, each once, in the order of definition. */
  *parameters(): Generator<Tensor> {
    for (const [, parameter] of this.namedParameters()) yield parameter;
  }

  /** Whether the module, as `train` and `eval` have set it, is being trained. Modules start so. */
  get training(): boolean {
    return dependOn(this.#readTraining);
  }

  /**
   * Sets whether this module and all inside it are being trained, which dropout depends on. Returns the module. Throws
   * a CompileError where that changes one in a compiled function, whose replays would not.
   */
  train(training = true): this {
    checkFlag('train', 'whether it is trained', training);
    for (const [, module] of this.namedModules()) {
      if (module.#training !== training)
        currentTrace()?.refuse(
          'train() or eval() changes a module, which replays would not',
          'Call it outside',
        );
      module.#training = training;
    }
    return this;
  }

  /** The same as `train(false)`. */
  eval(): this {
    return this.train(false);
  }

  /**
   * The parameters by their names, a tied one under each of its names. The handles are the caller's to dispose;
   * they share the parameters' memory, have no gradients, and outlive the module.
   */
  stateDict(): Record<string, Tensor> {
    const names = [...this.namedParameters('', { removeDuplicate: false })];
    return Object.fromEntries(names.map(([name, parameter]) => [name, parameter.detach()]));
  }

  /**
   * Copies a state into the parameters, cast to their dtypes, from any device; `state` stays the caller's.
   * The parameters stay the same tensors, with their gradients and what they require. A tied parameter needs one
   * of its names; where the state has more, their values must be the same.
   *
   * Throws a StateError that lists all that does not fit: missing and unexpected names (unless `strict` is false),
   * other shapes, integers for floating-point parameters; or that names a tensor with a value that the dtype of its parameter
   * cannot hold. Whatever is thrown, nothing has been written then: the copies are made in addition to the parameters,
   * whose memory is needed once more while they are.
   */
  loadStateDict(state: Readonly<Record<string, Tensor>>, options: StateMatchOptions = {}): StateMatch {
    checkObject('loadStateDict', 'the state', state);
    requireTensors('loadStateDict', Object.values(state));
    for (const [name, tensor] of Object.entries(state)) tensor.assertAlive(`loadStateDict: "${name}"`);
    const sources = new Map(
      Object.entries(state).map(([name, tensor]) => [
        name,
        { shape: tensor.shape, dtype: tensor.dtype, read: (device: Device) => copyTo(device, tensor) },
      ]),
    );
    const names = this.namedParameters('', { removeDuplicate: false });
    const { loads, ...match } = matchState('loadStateDict: the state', sources, names, options);
    overwriteParameters(loads);
    return match;
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

function twoOfOneName(name: string): RooflineError {
  return new RooflineError(
    'PARAMETERS',
    `namedParameters: two parameters have the name "${name}"; rename a property, whose capitals become "_" and a small letter.`,
  );
}

/** Throws a RooflineError (code ARGUMENT), which names `owner`, unless `module` is a module. */
export function requireModule(owner: string, module: AnyModule): void {
  if (module instanceof Module) return;
  throw new RooflineError('ARGUMENT', `${owner}: takes a module, not ${describeValue(module)}.`);
}

/** A module of any inputs. */
export type AnyModule = Module<never, unknown>;

/** Options of `namedParameters`. */
export interface NamedParametersOptions {
  /** Whether a tied parameter is given under its first name alone. Default true. */
  readonly removeDuplicate?: boolean;
}

/** A tensor of its own: a state may hold the very parameters that it is loaded into, under other names. */
function copyTo(device: Device, tensor: Tensor): Tensor {
  return tensor.device === device ? copy(tensor) : toDevice(tensor, device);
}

function* partReadsOf(module: AnyModule): Generator<() => unknown> {
  const parts = module as unknown as Record<string, unknown>;
  for (const [property, value] of Object.entries(parts)) {
    if (value instanceof Tensor || value instanceof Module) yield () => parts[property];
    else if (Array.isArray(value))
      for (const [i, item] of value.entries())
        if (item instanceof Module) yield () => (parts[property] as unknown[] | undefined)?.[i];
  }
}

function joinNames(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}.${name}`;
}

function snakeCase(property: string): string {
  return property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
