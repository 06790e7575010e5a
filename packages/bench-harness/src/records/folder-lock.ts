import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '../errors.ts';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Distinguishes two processes that got the same id; null where the system does not say. */
  readonly startTicks: string | null;
}

const LOCK_FILE = '.lock';
/** How every lock begins. */
const LOCK_HEAD = '{"pid":';
const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);
/** Taking a dead process's lock away takes far less. */
const STALE_WAIT_MS = 10_000;

/**
 * Takes the folder for this process and returns the way to give it back. Throws UsageError while another living
 * process holds it, and where no lock can be made; a lock whose process is dead is taken over.
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, LOCK_FILE);
  return acquire(path, ({ pid, host }) => {
    throw new UsageError(
      `${folder} is in use by process ${pid} on ${host}. ` +
        `Wait for it, take another --out, or delete ${path} if no such process exists.`,
    );
  });
}

/** Tries until the lock is this process's; `onHeld` waits for its living holder, or throws. */
function acquire(path: string, onHeld: (holder: Holder) => void): () => void {
  const own = JSON.stringify({ ...describeProcess(process.pid), nonce: randomUUID() });
  for (;;) {
    if (create(path, own)) return () => release(path, own);
    const text = readLock(path);
    if (text === null) continue;
    const holder = parseHolder(text, path);
    if (holder !== null && isAlive(holder)) onHeld(holder);
    else removeStale(path, text);
  }
}

/** Whether the lock is made: at once with all of its text, so that half of it is never read. */
function create(path: string, text: string): boolean {
  const aside = `${path}.${randomUUID()}`;
  try {
    writeFileSync(aside, text, { flag: 'wx' });
    linkOrWrite(aside, path, text);
    return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new UsageError(`Cannot make ${path} (${code}). Choose another folder by --out.`, { cause });
  } finally {
    rmSync(aside, { force: true });
  }
}

/** On file systems without hard links (exFAT, some network folders) the lock is made first, and then written. */
function linkOrWrite(aside: string, path: string, text: string): void {
  try {
    linkSync(aside, path);
  } catch (error) {
    if (!NO_HARD_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    writeFileSync(path, text, { flag: 'wx' });
  }
}

/**
 * Takes a dead process's lock away. One process at a time does so, by a lock of its own: between a look at the lock
 * and its removal no other process may have taken it.
 */
function removeStale(path: string, text: string): void {
  const deadline = performance.now() + STALE_WAIT_MS;
  const stalePath = `${path}.stale`;
  const done = acquire(stalePath, ({ pid, host }) => {
    if (performance.now() > deadline) {
      throw new UsageError(`${stalePath} is held by process ${pid} on ${host}. Delete it if it hangs.`);
    }
    sleepMs(1);
  });
  try {
    release(path, text);
  } finally {
    done();
  }
}

function sleepMs(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

/** Removes the lock if it still is the one of this text; the folder may have been replaced meanwhile. */
function release(path: string, text: string): void {
  if (readLock(path) === text) rmSync(path, { force: true });
}

/** Null where there is none. */
function readLock(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new UsageError(`Cannot read the lock ${path} (${code}). Remove it, or take another --out.`, {
      cause,
    });
  }
}

/**
 * Null for a lock of ours that was torn while being written. Throws UsageError for a file that is not a lock of ours.
 */
function parseHolder(text: string, path: string): Holder | null {
  const holder = text.startsWith(LOCK_HEAD) ? parseJson(text) : text === '' ? null : undefined;
  if (holder === null || isHolder(holder)) return holder;
  throw new UsageError(`${path} is no lock of Roofline's. Remove it, or take another --out.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isHolder(value: unknown): value is Holder {
  const { pid, host } = (value ?? {}) as Partial<Holder>;
  return Number.isSafeInteger(pid) && pid! > 0 && typeof host === 'string';
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

/** Field 22 of proc(5)'s stat: when the process started. Null for one that ended and has not been waited for. */
function startTicks(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' ? null : (fields[18] ?? null);
  } catch {
    return null;
  }
}
