import { fileURLToPath } from 'node:url';
import { codeFolder, cudaCode } from '@roofline/cuda/host';

/** One call, as Node prints it: with lines of the sources if source maps are enabled. */
export interface StackFrame {
  readonly name: string;
  /** A path, or what Node shows in its place. */
  readonly file: string;
  readonly line: number;
}

/** The innermost `depth` calls that led here, unformatted: cheap to take, expensive to read. */
export function captureStack(depth: number): Error {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = depth;
  const captured = new Error();
  Error.stackTraceLimit = before;
  return captured;
}

const ownCode = [codeFolder(import.meta.url), cudaCode].map((folder) => fileURLToPath(folder));
/** A call by its name and place, or by its place alone; paths may have parentheses. */
const framePattern = /^\s*at (?:async )?(?:(.*?) \((.*):(\d+):\d+\)|(.*):(\d+):\d+)$/;
const parsed = new Map<string, readonly StackFrame[]>();

/**
 * The frames that say something to a user, innermost first: not Node's own, and not those of this package or of `@roofline/cuda`.
 * Equal stacks give the same array.
 */
function framesOf(captured: Error): readonly StackFrame[] {
  const text = captured.stack ?? '';
  let frames = parsed.get(text);
  if (!frames) {
    frames = text.split('\n').flatMap((line) => parseFrame(line) ?? []);
    parsed.set(text, frames);
  }
  return frames;
}

const joined = new Map<readonly StackFrame[], Map<readonly StackFrame[], readonly StackFrame[]>>();

/**
 * The frames of `inner`, which `captureStack` may have truncated, and those of a call around it, `outer`, each once. Equal
 * stacks give the same array.
 */
export function joinedFrames(inner: Error, outer: Error): readonly StackFrame[] {
  const [near, far] = [framesOf(inner), framesOf(outer)];
  let joins = joined.get(far);
  if (!joins) joined.set(far, (joins = new Map()));
  let frames = joins.get(near);
  if (!frames) {
    const meeting = near.findIndex((_, depth) => areSameCalls(near.slice(depth), far));
    frames = [...(meeting < 0 ? near : near.slice(0, meeting)), ...far];
    joins.set(near, frames);
  }
  return frames;
}

/**
 * Whether two stacks are the same calls, as far as both go. One frame is not enough: functions without names may share a line.
 */
function areSameCalls(near: readonly StackFrame[], far: readonly StackFrame[]): boolean {
  return far.length > 0 && near.slice(0, far.length).every((frame, i) => isSameFrame(frame, far[i]!));
}

function isSameFrame(a: StackFrame, b: StackFrame): boolean {
  return a.name === b.name && a.file === b.file && a.line === b.line;
}

/** Forgets the stacks that were read, so that they do not outlive a recording. */
export function forgetStacks(): void {
  parsed.clear();
  joined.clear();
}

function parseFrame(text: string): StackFrame | null {
  const match = framePattern.exec(text);
  if (!match) return null;
  const [, name = '<anonymous>', namedPlace, namedLine, place, line] = match;
  const location = namedPlace ?? place!;
  if (location.startsWith('node:') || location.startsWith('native')) return null;
  const file = location.startsWith('file:') ? fileURLToPath(location) : location;
  if (ownCode.some((folder) => file.startsWith(folder))) return null;
  return { name, file, line: Number(namedLine ?? line) };
}
