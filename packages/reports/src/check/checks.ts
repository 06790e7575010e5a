import { ReportError } from '../model.ts';

// What JavaScript callers may pass instead of what TypeScript asks for. Checks are built as the model is; where one
// fails, the way to the part is put together only then, so that a hundred thousand good parts cost no texts.

/** A part that is not what it must be. */
interface Fault {
  /** The way to it, from what was checked: `.columns[0].label`. */
  readonly path: string;
  readonly wanted: string;
  readonly value: unknown;
}

/** Null for a value that is what it must be. */
export type Check = (value: unknown) => Fault | null;

/** @throws ReportError, which names `owner` and the part, unless `value` passes. */
export function requireThat(owner: string, what: string, value: unknown, check: Check): void {
  const fault = check(value);
  if (fault === null) return;
  throw new ReportError(
    `${owner}: ${what}${fault.path} must be ${fault.wanted}, not ${describe(fault.value)}`,
  );
}

/** Whatever passes `isAllowed`. */
export function such(wanted: string, isAllowed: (value: unknown) => boolean): Check {
  return (value) => (isAllowed(value) ? null : { path: '', wanted, value });
}

export const text = such('text', (value) => typeof value === 'string');
export const number = such('a number', (value) => typeof value === 'number');
export const flag = such('true or false', (value) => typeof value === 'boolean');
export const callable = such('a function', (value) => typeof value === 'function');
export const length = such(
  'a finite number above 0',
  (value) => typeof value === 'number' && value > 0 && Number.isFinite(value),
);

export function oneOf(names: readonly string[]): Check {
  return such(names.map((name) => `'${name}'`).join(' or '), (value) => names.includes(value as string));
}

export function optional(check: Check): Check {
  return (value) => (value === undefined ? null : check(value));
}

export function listOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return { path: '', wanted: 'a list', value };
    for (let index = 0; index < value.length; index++) {
      const fault = check(value[index]);
      if (fault !== null) return { ...fault, path: `[${index}]${fault.path}` };
    }
    return null;
  };
}

/** An object with these parts, and perhaps more. */
export function partsOf(parts: Readonly<Record<string, Check>>): Check {
  const checks = Object.entries(parts);
  return (value) => {
    if (!isObject(value)) return { path: '', wanted: 'an object', value };
    for (const [name, check] of checks) {
      const fault = check(value[name]);
      if (fault !== null) return { ...fault, path: `.${name}${fault.path}` };
    }
    return null;
  };
}

/** An object with some of these parts and no others: a name that is not an option was meant to do something. */
export function optionsOf(known: Readonly<Record<string, Check>>): Check {
  const check = partsOf(
    Object.fromEntries(Object.entries(known).map(([name, part]) => [name, optional(part)])),
  );
  const names = Object.keys(known);
  return (value) => {
    const stranger = isObject(value) ? Object.keys(value).find((name) => !names.includes(name)) : undefined;
    if (stranger === undefined) return check(value);
    return { path: '', wanted: `options among ${names.join(', ')}`, value: stranger };
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'a list';
  return isObject(value) ? 'an object' : String(value);
}
