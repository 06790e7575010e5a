import { fileURLToPath } from 'node:url';

/** One call, as Node prints it: with the lines of the sources where source maps are on. */
export interface StackFrame {
  readonly name: string;
  /** A path, or what stands for one. */
  readonly file: string;
  readonly line: number;
}

/** The innermost `depth` calls that led here, unformatted: cheap to take, dear to read. */
export function captureStack(depth: number): Error {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = depth;
  const captured = new Error();
  Error.stackTraceLimit = before;
  return captured;
}

const packageFolder = new URL('..', import.meta.url);
const framePattern = /^\s*at (?:(?:async )?(.*) \()?(.*?):(\d+):\d+\)?$/;
const parsed = new Map<string, readonly StackFrame[]>();

/**
 * The frames that say something to a user, innermost first: not Node's own, and not those of this package.
 * Equal stacks give the same array.
 */
export function framesOf(captured: Error): readonly StackFrame[] {
  const text = captured.stack ?? '';
  let frames = parsed.get(text);
  if (!frames) {
    frames = text.split('\n').flatMap((line) => parseFrame(line) ?? []);
    parsed.set(text, frames);
  }
  return frames;
}

/** Forgets the stacks that were read, so that they do not outlive a recording. */
export function forgetStacks(): void {
  parsed.clear();
}

function parseFrame(text: string): StackFrame | null {
  const match = framePattern.exec(text);
  if (!match) return null;
  const [, name = '<anonymous>', location, line] = match;
  if (location!.startsWith('node:') || location!.startsWith('native')) return null;
  const file = location!.startsWith('file:') ? fileURLToPath(location!) : location!;
  if (file.startsWith(fileURLToPath(packageFolder))) return null;
  return { name, file, line: Number(line) };
}
