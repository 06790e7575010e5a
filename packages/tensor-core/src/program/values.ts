import { CompileError } from '../errors.ts';
import { describeValue } from '../tensor/check-value.ts';
import { isGradEnabled } from '../autograd/grad-mode.ts';
import { Tensor } from '../tensor/tensor.ts';

/** What a function was called with: its tensors, and in a text what else a program of it depends on. */
export interface DescribedArguments {
  readonly signature: string;
  /** Tensors that any other of their shape and dtype may take the place of, each once. */
  readonly tensors: readonly Tensor[];
}

const nothing: DescribedArguments = { signature: '[]', tensors: [] };

const identities = new WeakMap<object, number>();
let identityCount = 0;

function identityOf(value: object): number {
  let identity = identities.get(value);
  if (identity === undefined) identities.set(value, (identity = ++identityCount));
  return identity;
}

/** Throws a CompileError for tensors with history, whose gradient a replay would lose, and for what refers to itself. */
export function describeArguments(values: readonly unknown[]): DescribedArguments {
  if (values.length === 0) return nothing;
  const tensors = new Map<Tensor, number>();
  const open = new Set<object>();
  const describe = (value: unknown): string => {
    if (value instanceof Tensor) return describeTensor(value, tensors);
    if (typeof value === 'function') return `@${identityOf(value)}`;
    if (typeof value !== 'object' || value === null) return describePrimitive(value);
    if (!isContainer(value)) return `@${identityOf(value)}`;
    if (open.has(value))
      throw new CompileError('compile: an argument holds itself; pass it without the circle.');
    open.add(value);
    const parts = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${describe(item)}`);
    open.delete(value);
    return Array.isArray(value) ? `[${parts.join()}]` : `{${parts.join()}}`;
  };
  return { signature: describe(values), tensors: [...tensors.keys()] };
}

function describeTensor(x: Tensor, tensors: Map<Tensor, number>): string {
  x.assertAlive('compile: an argument');
  // A leaf is known by itself: its gradient goes to it.
  if (x.requiresGrad && x.isLeaf) return `leaf@${identityOf(x)}`;
  if (x.requiresGrad && isGradEnabled()) {
    throw new CompileError(
      'compile: an argument has a history, and its gradient would end at the compiled function; compile what made it ' +
        'too, or detach() it.',
    );
  }
  let place = tensors.get(x);
  if (place === undefined) tensors.set(x, (place = tensors.size));
  return `${place}:${x.dtype}[${x.shape.join()}]${x.device.label}`;
}

function describePrimitive(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') {
    throw new CompileError(`compile: ${describeValue(value)} is no argument that calls can be compared by.`);
  }
  return Object.is(value, -0) ? '-0' : String(value);
}

/** `value` with each instance of `type` in its arrays and plain objects replaced. */
export function mapInstances<I extends object>(
  value: unknown,
  type: abstract new (...values: never[]) => I,
  replace: (instance: I) => unknown,
): unknown {
  if (value instanceof type) return replace(value);
  if (typeof value !== 'object' || value === null || !isContainer(value)) return value;
  if (Array.isArray(value)) return value.map((item) => mapInstances(item, type, replace));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapInstances(item, type, replace)]),
  );
}

/** Throws a CompileError unless a function's result is made of tensors, in arrays and plain objects. */
export function checkResult(value: unknown, path = 'the result'): void {
  if (value instanceof Tensor || value === undefined || value === null) return;
  if (typeof value === 'object' && isContainer(value)) {
    for (const [key, item] of Object.entries(value)) checkResult(item, `${path}.${key}`);
    return;
  }
  throw new CompileError(
    `compile: ${path} is ${describeValue(value)}, which a replay would not calculate again; return tensors, in arrays ` +
      'and plain objects.',
  );
}

function isContainer(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
