import { readFileSync } from 'node:fs';
import { findSourceMap } from 'node:module';
import { dirname, isAbsolute, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A place in a source: where source maps are on, in the one that was written. Lines and columns count from 1. */
export interface Place {
  /** A path, or what stands for one, as `REPL1` does. */
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The user's code may lie below many layers. */
const mostFrames = 200;

/** Where the user's code is: the innermost call that is neither Node's nor in a package of Roofline; null for none. */
export function userPlace(): Place | null {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const holder: { stack?: unknown } = {};
  // What Node gives as a text would have to be read again, and takes longer.
  Error.prepareStackTrace = (_, sites) => sites;
  Error.stackTraceLimit = mostFrames;
  try {
    Error.captureStackTrace(holder, userPlace);
    return placeAmong(holder.stack as NodeJS.CallSite[]);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    if (prepareStackTrace) Error.prepareStackTrace = prepareStackTrace;
    else Reflect.deleteProperty(Error, 'prepareStackTrace');
  }
}

/** `train.ts:12:7`; the path is that from the current folder where it lies there. */
export function formatPlace({ file, line, column }: Place): string {
  return `${fromCurrentFolder(file)}:${line}:${column}`;
}

function placeAmong(sites: readonly NodeJS.CallSite[]): Place | null {
  for (const site of sites) {
    const script = site.getFileName();
    if (!script || script.startsWith('node:')) continue;
    const place = { file: script, line: site.getLineNumber() ?? 1, column: site.getColumnNumber() ?? 1 };
    const written = process.sourceMapsEnabled ? asWritten(place) : place;
    if (!isOurs(written.file)) return { ...written, file: pathOf(written.file) };
  }
  return null;
}

function asWritten(place: Place): Place {
  const origin = findSourceMap(place.file)?.findOrigin(place.line, place.column);
  if (!origin || !('fileName' in origin)) return place;
  return { file: origin.fileName, line: origin.lineNumber, column: origin.columnNumber };
}

function pathOf(script: string): string {
  if (!script.startsWith('file:')) return script;
  try {
    return fileURLToPath(script);
  } catch {
    return script; // Of another machine.
  }
}

const known = new Map<string, boolean>();

/** Whether a script is of Roofline's packages, as source or built: their tests and examples are users. */
function isOurs(script: string): boolean {
  let ours = known.get(script);
  if (ours === undefined) {
    const file = pathOf(script);
    known.set(script, (ours = isAbsolute(file) && liesInOurPackage(file)));
  }
  return ours;
}

function liesInOurPackage(file: string): boolean {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    const name = packageNameAt(folder);
    if (name !== null) {
      const [room] = relative(folder, file).split(sep);
      return name.startsWith('@roofline/') && (room === 'src' || room === 'dist');
    }
    if (folder === dirname(folder)) return false;
  }
}

/** Null where no package begins. */
function packageNameAt(folder: string): string | null {
  try {
    const { name } = JSON.parse(readFileSync(`${folder}${sep}package.json`, 'utf8')) as { name?: unknown };
    return typeof name === 'string' ? name : '';
  } catch {
    return null;
  }
}

function fromCurrentFolder(file: string): string {
  if (!isAbsolute(file)) return file;
  try {
    const path = relative(process.cwd(), file);
    return path.startsWith('..') || isAbsolute(path) ? file : path;
  } catch {
    return file; // The current folder is gone.
  }
}
