import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const load = createRequire(import.meta.url);

// Loaded with the first picture: the two take longer to load than all else here, and most programs draw none.
let observable: typeof import('@observablehq/plot') | undefined;
let linkedom: typeof import('linkedom') | undefined;

export function observablePlot(): typeof import('@observablehq/plot') {
  return (observable ??= load('@observablehq/plot') as typeof import('@observablehq/plot'));
}

/** An empty page of linkedom's. */
export function emptyDocument(): ReturnType<typeof import('linkedom').parseHTML>['document'] {
  // One file in place of two hundred, which take seven times as long to load. It is the same but for a canvas.
  linkedom ??= load(fileURLToPath(import.meta.resolve('linkedom/worker'))) as typeof import('linkedom');
  return linkedom.parseHTML('<!doctype html><html><body></body></html>').document;
}
