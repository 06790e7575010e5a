import { CompileError } from '../../base/errors.ts';
import { describeValue } from '@roofline/cuda/host';
import { isGradEnabled } from '../../tensor/tape/grad-mode.ts';
import { Tensor } from '../../tensor/tensor.ts';

/** What a function was called with: its tensors, and, as text, what else a specialization of it depends on. */
export interface DescribedArguments {
  readonly signature: string;
  /** Tensors that may be replaced by others of the same shape, strides, dtype and device, each once. */
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

/** Throws a CompileError for tensors with history, whose gradient a replay would lose, and for circular values. */
export function describeArguments(values: readonly unknown[]): DescribedArguments {
  if (values.length === 0) return nothing;
  const tensors = new Map<Tensor, number>();
  const open = new Set<object>();
  /** Tensors in maps and sets count by identity: replays do not replace them. */
  const describe = (value: unknown, isReplaced = true): string => {
    if (value instanceof Tensor) return isReplaced ? describeTensor(value, tensors) : `@${identityOf(value)}`;
    if (typeof value === 'function') return `@${identityOf(value)}`;
    if (typeof value !== 'object' || value === null) return describePrimitive(value);
    if (open.has(value))
      throw new CompileError('compile: an argument holds itself; pass it without the circle.');
    open.add(value);
    const text = describeObject(value, (item, stays) => describe(item, isReplaced && !stays));
    open.delete(value);
    return text;
  };
  return { signature: describe(values), tensors: [...tensors.keys()] };
}

/** Containers by their contents, other objects by identity. */
function describeObject(value: object, describe: (item: unknown, stays?: boolean) => string): string {
  if (isContainer(value)) {
    refuseSymbolKeys(value);
    const parts = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${describe(item)}`);
    // An array may have holes.
    return Array.isArray(value) ? `${value.length}[${parts.join()}]` : `{${parts.join()}}`;
  }
  if (value instanceof Map || value instanceof Set)
    return `${value.constructor.name}(${[...value].map((item: unknown) => describe(item, true)).join()})`;
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (ArrayBuffer.isView(value))
    return `${value.constructor.name}(${textOf(value.buffer, value.byteOffset, value.byteLength)})`;
  if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer)
    return `ArrayBuffer(${textOf(value, 0, value.byteLength)})`;
  return `@${identityOf(value)}`;
}

function textOf(buffer: ArrayBufferLike, byteOffset: number, byteLength: number): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

function refuseSymbolKeys(value: object): void {
  const [symbol] = Object.getOwnPropertySymbols(value);
  if (symbol === undefined) return;
  throw new CompileError(
    `compile: ${String(symbol)} is no key that arguments can be compared by; take text instead.`,
  );
}

function describeTensor(x: Tensor, tensors: Map<Tensor, number>): string {
  x.assertAlive('compile: an argument');
  // A leaf counts by identity, because its gradient goes to it.
  if (x.requiresGrad && x.isLeaf) return `leaf@${identityOf(x)}`;
  if (x.requiresGrad && isGradEnabled()) {
    throw new CompileError(
      'compile: an argument has a history, and its gradient would end at the compiled function; compile what made it ' +
        'too, or detach() it.',
    );
  }
  let place = tensors.get(x);
  if (place === undefined) tensors.set(x, (place = tensors.size));
  const layout = x.isContiguous ? x.shape.join() : `${x.shape.join()};${x.strides.join()}`;
  return `${place}:${x.dtype}[${layout}]${x.device.label}`;
}

function describePrimitive(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') {
    throw new CompileError(`compile: ${describeValue(value)} is no argument that calls can be compared by.`);
  }
  return Object.is(value, -0) ? '-0' : String(value);
}

/** `value` with each instance of `type`, also in arrays and plain objects, replaced. */
export function mapInstances<I extends object>(
  value: unknown,
  type: abstract new (...values: never[]) => I,
  replace: (instance: I) => unknown,
): unknown {
  if (value instanceof type) return replace(value);
  if (!isContainer(value)) return value;
  if (Array.isArray(value)) return value.map((item) => mapInstances(item, type, replace));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, mapInstances(item, type, replace)]),
  );
}

/** Whether two values are deeply equal: arrays and plain objects by their contents, all else by Object.is. */
export function holdsSame(value: unknown, other: unknown): boolean {
  if (Object.is(value, other)) return true;
  if (!isContainer(value) || !isContainer(other)) return false;
  const [entries, others] = [Object.entries(value), Object.entries(other)];
  return (
    entries.length === others.length &&
    entries.every(([key, item], i) => key === others[i]![0] && holdsSame(item, others[i]![1]))
  );
}

/** Throws a CompileError, naming `owner`, unless a result is made of tensors in arrays and plain objects without a circle. */
export function checkResult(
  value: unknown,
  owner = 'compile',
  path = 'the result',
  holders: ReadonlySet<object> = new Set(),
): void {
  if (value instanceof Tensor || value === undefined || value === null) return;
  if (isContainer(value)) {
    if (holders.has(value))
      throw new CompileError(`${owner}: ${path} holds itself; return tensors without the circle.`);
    const inner = new Set([...holders, value]);
    for (const [key, item] of Object.entries(value)) checkResult(item, owner, `${path}.${key}`, inner);
    return;
  }
  throw new CompileError(
    `${owner}: ${path} is ${describeValue(value)}, which a replay would not calculate again; return tensors, in arrays ` +
      'and plain objects.',
  );
}

/** Whether it is an array or a plain object. */
function isContainer(value: unknown): value is readonly unknown[] | Readonly<Record<string, unknown>> {
  if (Array.isArray(value)) return true;
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
