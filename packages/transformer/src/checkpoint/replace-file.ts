import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, isAbsolute } from 'node:path';
import { lockFile } from '@roofline/cuda/host';

/**
 * Writes a file by `write`, which gets its descriptor, as a `FileReplacement`. Throws what `refusal` makes of the reason for a path that is no
 * regular file, and what `write` and the file system throw; the file is then as it was.
 */
export function replaceFile(
  path: string,
  write: (file: number) => void,
  refusal: (reason: string) => Error,
): void {
  using replacement = new FileReplacement(path, refusal);
  write(replacement.file);
  replacement.commit();
}

/** What became of files that killed processes had left; `adopted` if one of them is gone on with. */
export type Leftovers = 'none' | 'removed' | 'adopted';

/**
 * A file that is to take the place of another. One that is there keeps its permissions, and a link still leads to the file, be it
 * one that was not there. It appears under its name only when all of it is on the disk: a machine that stops meanwhile leaves the
 * one before. Until then it lies next to it as `<name>.<16 digits>.partial`; those that killed processes left are removed first,
 * except on Windows and on file systems without locks. Disposed before `commit`, it is removed.
 */
export class FileReplacement {
  /** Open for reading and writing. */
  readonly file: number;
  readonly leftovers: Leftovers;
  readonly #partial: string;
  readonly #target: string;
  #isOpen = true;

  /**
   * `adopts` is shown each file that a killed process left, as long as none was taken, and says whether to go on with it. Throws what `refusal`
   * makes of the reason for a path that is no regular file.
   */
  constructor(
    path: string,
    refusal: (reason: string) => Error,
    adopts: (file: number) => boolean = () => false,
  ) {
    const { target, mode } = placeToWrite(path, refusal);
    const { adopted, hadAny } = takeLeftovers(target, adopts);
    const { partial, file } = adopted ?? openPartial(target);
    [this.file, this.#partial, this.#target] = [file, partial, target];
    this.leftovers = adopted !== null ? 'adopted' : hadAny ? 'removed' : 'none';
    try {
      if (mode !== undefined) fchmodSync(file, mode);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** Gives the file its name, once all of it is on the disk. */
  commit(): void {
    fsyncSync(this.file);
    // While it is open, and with that locked: another process could take it for a leftover.
    renameSync(this.#partial, this.#target);
    this.#close();
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    rmSync(this.#partial, { force: true });
    this.#close();
  }

  #close(): void {
    closeSync(this.file);
    this.#isOpen = false;
  }
}

/** Where a link leads to, and the permissions that are there: a rename over `path` itself would replace both. */
function placeToWrite(path: string, refusal: (reason: string) => Error): { target: string; mode?: number } {
  const there = statSync(path, { throwIfNoEntry: false });
  if (!there) return { target: endOfLinks(path) };
  if (there.isFile()) return { target: realpathSync.native(path), mode: there.mode & 0o777 };
  const kind = there.isDirectory() ? 'a folder' : 'no regular file';
  throw refusal(`${path} is ${kind}; name a file to write or to replace.`);
}

/** Where dangling links lead to; `path` itself where it is not a link. */
function endOfLinks(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  const next = readlinkSync(path);
  return endOfLinks(isAbsolute(next) ? next : `${dirname(path)}/${next}`);
}

/**
 * A new file next to `target`, locked until it is closed, or until its process ends. Other threads and containers may write
 * there at once, and each container numbers its processes from the start.
 */
function openPartial(target: string): PartialFile {
  for (;;) {
    const partial = `${target}.${randomBytes(8).toString('hex')}.partial`;
    const file = openSync(partial, 'wx+');
    lockFile(file, { waits: true });
    if (isNamed(partial, file)) return { partial, file };
    closeSync(file);
  }
}

interface PartialFile {
  readonly partial: string;
  readonly file: number;
}

/** Removes the files next to `target` that no process is writing any more, but for one that is adopted, which stays open. */
function takeLeftovers(
  target: string,
  adopts: (file: number) => boolean,
): { adopted: PartialFile | null; hadAny: boolean } {
  const folder = dirname(target);
  let [adopted, hadAny]: [PartialFile | null, boolean] = [null, false];
  for (const name of namesIn(folder)) {
    const rest = name.startsWith(basename(target)) ? name.slice(basename(target).length) : '';
    if (!/^\.[0-9a-f]{16}\.partial$/.test(rest)) continue;
    const left = takeUnlessWritten(`${folder}/${name}`);
    if (left === null) continue;
    hadAny = true;
    if (adopted === null && adopts(left.file)) adopted = left;
    else removePartial(left);
  }
  return { adopted, hadAny };
}

/** None in a folder that may be written but not read. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Opens and locks a file that no process is writing, as none holds its lock; null for any other. */
function takeUnlessWritten(partial: string): PartialFile | null {
  let file: number;
  try {
    file = openSync(partial, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch {
    // It has been renamed or removed meanwhile, or belongs to another process.
    return null;
  }
  if (lockFile(file) === 'taken' && isNamed(partial, file)) return { partial, file };
  closeSync(file);
  return null;
}

/** Before it was locked, another process may have renamed or removed it. */
function isNamed(partial: string, file: number): boolean {
  return statSync(partial, { throwIfNoEntry: false })?.ino === fstatSync(file).ino;
}

function removePartial({ partial, file }: PartialFile): void {
  rmSync(partial, { force: true });
  closeSync(file);
}
