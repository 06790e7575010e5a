import { RooflineError } from './errors.ts';
import { checkFunction } from './check-value.ts';

const AsyncFunction = (async () => {}).constructor;

/** Throws for an `async` function, before it has run: what `name` sets up ends at its first `await`; and for none. */
export function refuseAsync(name: string, fn: unknown): void {
  checkFunction(name, 'what it runs', fn);
  if (fn instanceof AsyncFunction) throw mustBeSynchronous(name);
}

/** Returns `result`, but throws if it is a promise: then what `name` set up has ended before the work has. */
export function refusePromise<T>(name: string, result: T): T {
  if (!isThenable(result)) return result;
  // Its work goes on and may fail on what is freed by now; the error that counts is thrown here.
  result.then(undefined, () => {});
  throw mustBeSynchronous(name);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

function mustBeSynchronous(name: string): RooflineError {
  return new RooflineError(
    'ASYNCHRONOUS',
    `${name}: the function is async or returned a promise, but ${name}() ends when the function returns. ` +
      'Await outside, and call it with the values that came.',
  );
}
