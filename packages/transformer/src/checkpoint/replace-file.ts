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
 * Writes a file by `write`, which gets its descriptor. A file that is there keeps its permissions, and a link still leads to
 * the file, be it one that was not there. It appears under its name only when all of it is on the disk: a machine that stops
 * meanwhile leaves the one before. Until then it lies next to it as `<name>.<16 digits>.partial`; those that killed processes
 * left are removed first, except on Windows and on file systems without locks, and `write` is told whether there were any. Throws
 * what `refusal` makes of the reason for a path that is no regular file, and what `write` and the file system throw; the file is
 * then as it was.
 */
export function replaceFile(
  path: string,
  write: (file: number, hadLeftovers: boolean) => void,
  refusal: (reason: string) => Error,
): void {
  const { target, mode } = placeToWrite(path, refusal);
  const hadLeftovers = removeLeftovers(target);
  const { partial, file } = openPartial(target);
  try {
    if (mode !== undefined) fchmodSync(file, mode);
    write(file, hadLeftovers);
    fsyncSync(file);
    // While it is open, and with that locked: another process could take it for a leftover.
    renameSync(partial, target);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  } finally {
    closeSync(file);
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
function openPartial(target: string): { partial: string; file: number } {
  for (;;) {
    const partial = `${target}.${randomBytes(8).toString('hex')}.partial`;
    const file = openSync(partial, 'wx');
    lockFile(file, { waits: true });
    // Before it was locked, another process may have removed it as a leftover.
    if (statSync(partial, { throwIfNoEntry: false })?.ino === fstatSync(file).ino) return { partial, file };
    closeSync(file);
  }
}

/** Whether there were any. */
function removeLeftovers(target: string): boolean {
  const folder = dirname(target);
  let hadAny = false;
  for (const name of namesIn(folder)) {
    const rest = name.startsWith(basename(target)) ? name.slice(basename(target).length) : '';
    if (/^\.[0-9a-f]{16}\.partial$/.test(rest)) hadAny = removeUnlessWritten(`${folder}/${name}`) || hadAny;
  }
  return hadAny;
}

/** None in a folder that may be written but not read. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Removes a file that no process is writing, as none holds its lock; whether it did. */
function removeUnlessWritten(partial: string): boolean {
  let file: number;
  try {
    file = openSync(partial, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch {
    // It has been renamed or removed meanwhile, or belongs to another process.
    return false;
  }
  try {
    if (lockFile(file) !== 'taken') return false;
    rmSync(partial, { force: true });
    return true;
  } finally {
    closeSync(file);
  }
}
