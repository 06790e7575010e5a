import { describe, expect, it } from 'vitest';

/** What JavaScript may give in any place, by the name that tables list it under. */
const hostileValues = {
  undefined: () => undefined,
  null: () => null,
  '5': () => 5,
  a: () => 'a',
  '{}': () => ({}),
  '[]': () => [],
  NaN: () => NaN,
  Infinity: () => Infinity,
  symbol: () => Symbol('s'),
  '1n': () => 1n,
  fn: () => () => {},
  option: () => ({ nosuch: 1 }),
  duck: () => ({ shape: [2], dtype: 'float32', strides: [1], offset: 0, rank: 1, size: 2 }),
} as const;

type HostileName = keyof typeof hostileValues;

/** Where a hostile value is put: an argument, or a part of one, as `1`, `1.dtype` and `0.columns.0.label`. */
type Place = string;

/** How one function is called. */
export interface HostileCall {
  /** Legal arguments, newly made for each call. What is a plain object is taken for options, all of them given. */
  readonly args: () => readonly unknown[];
  /** The hostile values that a place takes all the same, separated by blanks. */
  readonly legal?: Readonly<Record<Place, string>>;
  /** Calls it. Default: the function that the key names. */
  readonly call?: (...args: never[]) => unknown;
  /** Positions of plain objects that are no options. */
  readonly whole?: readonly number[];
  /** Positions whose parts have parts, down to the first element of each list. Default: options alone are looked into. */
  readonly deep?: readonly number[];
  /** Whether an argument after the last parameter is refused. */
  readonly takesNoMore?: boolean;
  /** What messages may call the function, as a regular expression. Default: what the key calls it. */
  readonly named?: string;
  /** Run after each call: what it has changed for good is undone. */
  readonly undo?: () => void;
}

/** What is not called, with the reason. */
export interface Exempt {
  readonly exempt: string;
}

/** The classes of a package's errors. */
type ErrorClass = abstract new (...args: never[]) => Error;
type OurErrors = ErrorClass | ErrorClass[];

export type HostileTable = Readonly<Record<string, HostileCall | Exempt>>;

export function exempt(reason: string): Exempt {
  return { exempt: reason };
}

/**
 * Everything that a package's namespace lets one call: functions, `new Class`, `Class#method`, and `Class#property=`.
 */
export function callablesOf(namespace: object): Map<string, (...args: never[]) => unknown> {
  const callables = new Map<string, (...args: never[]) => unknown>();
  for (const [name, value] of Object.entries(namespace)) {
    if (typeof value !== 'function') continue;
    if (!isClass(value)) callables.set(name, value as () => unknown);
    else addClass(name, value as new (...args: never[]) => object, callables);
  }
  return callables;
}

function isClass(value: object): boolean {
  return Function.prototype.toString.call(value).startsWith('class');
}

function addClass(
  name: string,
  Class: new (...args: never[]) => object,
  into: Map<string, (...args: never[]) => unknown>,
): void {
  into.set(`new ${name}`, (...args) => new Class(...args));
  for (const [key, { value, set }] of Object.entries(Object.getOwnPropertyDescriptors(Class.prototype))) {
    if (key === 'constructor') continue;
    if (typeof value === 'function')
      into.set(`${name}#${key}`, (self: Record<string, (...args: unknown[]) => unknown>, ...args) =>
        self[key]!(...args),
      );
    else if (set) into.set(`${name}#${key}=`, (self: object, to: unknown) => Reflect.set(self, key, to));
  }
  for (const [key, { value }] of Object.entries(Object.getOwnPropertyDescriptors(Class)))
    if (typeof value === 'function' && key !== 'prototype')
      into.set(`${name}.${key}`, value as () => unknown);
}

/**
 * Calls everything that `namespace` exports with what its parameters are not, place by place, and expects an error of
 * `ours` that names the function; or, where the table says so, a result. A new export that is in no table fails.
 */
export function describeHostileArguments(namespace: object, table: HostileTable, ours: OurErrors): void {
  describeHostileCalls(callablesOf(namespace), table, ours);
}

/** The same for the methods of classes that a package gives objects of, but does not export. */
export function describeHostileMethods(
  classes: Readonly<Record<string, object>>,
  table: HostileTable,
  ours: OurErrors,
): void {
  const methods = [...callablesOf(classes)].filter(([key]) => key.includes('#'));
  describeHostileCalls(new Map(methods), table, ours);
}

function describeHostileCalls(
  callables: ReturnType<typeof callablesOf>,
  table: HostileTable,
  ours: OurErrors,
): void {
  it('the table holds everything that can be called', () => {
    expect(Object.keys(table).sort()).toEqual([...callables.keys()].sort());
  });

  describe('hostile arguments', () => {
    const calls = Object.entries(table).filter((entry): entry is [string, HostileCall] => 'args' in entry[1]);
    it.each(calls)('%s', async (key, entry) => {
      const call = entry.call ?? callables.get(key)!;
      const unlike: string[] = [];
      for (const { place, value, args } of hostileCalls(key, entry)) {
        const outcome = await outcomeOf(call, args, entry, ours, nameIn(key, entry));
        const isLegal = isListed(entry, place, value);
        if (outcome !== (isLegal ? 'a result' : 'our error'))
          unlike.push(`${place}: ${value} gives ${outcome}, not ${isLegal ? 'a result' : 'our error'}`);
      }
      expect(unlike).toEqual([]);
    });
  });
}

function nameIn(key: string, { named }: HostileCall): string {
  return (
    named ??
    key
      .replace(/^new /, '')
      .replace(/^.*[#.]/, '')
      .replace(/=$/, '')
  );
}

function isListed({ legal = {} }: HostileCall, place: Place, value: string): boolean {
  return (legal[place] ?? '').split(' ').includes(value);
}

interface PlacedCall {
  readonly place: Place;
  readonly value: HostileName;
  readonly args: readonly unknown[];
}

function* hostileCalls(key: string, entry: HostileCall): Generator<PlacedCall> {
  const { args, whole = [], deep = [], takesNoMore = false } = entry;
  const positions = args().length;
  // What a method is called on is its own.
  for (let i = key.includes('#') ? 1 : 0; i < positions; i++) {
    const depth = whole.includes(i) ? 0 : deep.includes(i) ? Infinity : 1;
    for (const path of pathsIn(args()[i], depth))
      for (const value of Object.keys(hostileValues) as HostileName[]) {
        const argument = replaced(args()[i], path, hostileValues[value]());
        yield { place: [i, ...path].join('.'), value, args: args().with(i, argument) };
      }
  }
  if (!takesNoMore) return;
  for (const value of ['option', 'a', '5', 'null', 'fn'] as const)
    yield { place: `${positions}`, value, args: [...args(), hostileValues[value]()] };
}

/** The ways to an argument and to its parts: options by their names, and the first of a list. */
function* pathsIn(argument: unknown, depth: number): Generator<readonly string[]> {
  yield [];
  if (depth === 0) return;
  const isList = Array.isArray(argument) && depth > 1;
  if (!isPlain(argument) && !isList) return;
  for (const [name, part] of Object.entries(argument).slice(0, isList ? 1 : undefined))
    for (const path of pathsIn(part, depth - 1)) yield [name, ...path];
}

/** An argument with another value at the end of a path. */
function replaced(argument: unknown, [name, ...path]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(argument))
    return argument.with(Number(name), replaced(argument[Number(name)], path, value));
  const options = argument as Readonly<Record<string, unknown>>;
  return { ...options, [name]: replaced(options[name], path, value) };
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function isIterator(value: unknown): value is Iterator<unknown> {
  return typeof value === 'object' && value !== null && 'next' in value && typeof value.next === 'function';
}

async function outcomeOf(
  call: (...args: never[]) => unknown,
  args: readonly unknown[],
  { undo }: HostileCall,
  ours: OurErrors,
  name: string,
): Promise<string> {
  try {
    const result = await call(...(args as never[]));
    // Generators check when they begin.
    if (isIterator(result)) result.next();
    return 'a result';
  } catch (error) {
    if (![ours].flat().some((each) => error instanceof each))
      return `${(error as Error).name}: ${(error as Error).message}`;
    const { message } = error as Error;
    return new RegExp(name).test(message) ? 'our error' : `an error without its name: ${message}`;
  } finally {
    undo?.();
  }
}
