import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../errors.ts';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Tells apart two processes that got the same id; null where the system does not say. */
  readonly startTicks: string | null;
}

const LOCK_FILE = '.lock';

/**
 * Takes the folder for this process and returns the way to give it back. Throws UsageError while another
 * living process holds it; a lock whose process is dead is taken over.
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, LOCK_FILE);
  const own = JSON.stringify(describeProcess(process.pid));
  for (;;) {
    try {
      writeFileSync(path, own, { flag: 'wx' });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    removeStaleLock(path, folder);
  }
}

function removeStaleLock(path: string, folder: string): void {
  const text = readLock(path);
  if (text === null) return;
  const holder = parseHolder(text);
  if (holder !== null && isAlive(holder)) {
    throw new UsageError(
      `${folder} is in use by process ${holder.pid} on ${holder.host}. ` +
        `Wait for it, take another --out, or delete ${path} if no such process exists.`,
    );
  }
  // Renaming is atomic: should another process have taken over meanwhile, its lock goes back in place.
  const aside = `${path}.${process.pid}`;
  renameSync(path, aside);
  if (readLock(aside) !== text) linkSync(aside, path);
  rmSync(aside);
}

function readLock(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Null for a lock that was torn while being written. */
function parseHolder(text: string): Holder | null {
  try {
    return JSON.parse(text) as Holder;
  } catch {
    return null;
  }
}

function describeProcess(pid: number): Holder {
  return { pid, host: hostname(), startTicks: startTicks(pid) };
}

function isAlive(holder: Holder): boolean {
  if (holder.host !== hostname()) return true;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return startTicks(holder.pid) === holder.startTicks;
}

/** Field 22 of proc(5)'s stat: when the process started. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
