import { RooflineError } from './errors.ts';

// What JavaScript's callers may give in place of what TypeScript asks for: each check throws an error that names the
// function, what came, and what it takes.

/** What was given in the place of something else, in a few words for an error. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return `the text "${value}"`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** Throws a RooflineError (code RANGE) unless `value` is a number that is allowed, finite ones by default. */
export function checkNumber(
  owner: string,
  what: string,
  value: number,
  wanted = 'a finite number',
  isAllowed: (value: number) => boolean = Number.isFinite,
): void {
  if (typeof value === 'number' && isAllowed(value)) return;
  throw new RooflineError('RANGE', `${owner}: ${what} must be ${wanted}, not ${describeValue(value)}.`);
}

/** Throws a RooflineError (code RANGE) unless `value` is a whole number, exact, of `least` or more. */
export function checkCount(owner: string, what: string, value: number, least: 0 | 1 = 0): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new RooflineError(
    'RANGE',
    `${owner}: ${what} must be a whole number of ${least === 0 ? 'zero' : 'one'} or more, not ${describeValue(value)}.`,
  );
}

/** Throws a RooflineError (code ARGUMENT) unless `value` is true or false. */
export function checkFlag(owner: string, what: string, value: boolean): void {
  if (typeof value !== 'boolean') throw wrongArgument(owner, what, 'true or false', value);
}

/** Throws a RooflineError (code ARGUMENT) unless `value` is text. */
export function checkText(owner: string, what: string, value: string): void {
  if (typeof value !== 'string') throw wrongArgument(owner, what, 'text', value);
}

/** Throws a RooflineError (code ARGUMENT) unless `value` is an object, and no array. */
export function checkObject(owner: string, what: string, value: object): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw wrongArgument(owner, what, 'an object', value);
}

/** Throws a RooflineError (code FUNCTION) unless `value` is a function. */
export function checkFunction(owner: string, what: string, value: unknown): void {
  if (typeof value === 'function') return;
  throw new RooflineError('FUNCTION', `${owner}: ${what} must be a function, not ${describeValue(value)}.`);
}

/** The error for an argument that is not `wanted`. */
export function wrongArgument(owner: string, what: string, wanted: string, value: unknown): RooflineError {
  return new RooflineError('ARGUMENT', `${owner}: ${what} must be ${wanted}, not ${describeValue(value)}.`);
}
