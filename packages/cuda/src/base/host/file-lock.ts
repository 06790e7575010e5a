import { constants } from 'node:os';
import { RooflineError } from '../errors.ts';
import { ffi } from './ffi.ts';

/** What came of a lock: `unsupported` where there are none, as on Windows and on some network disks. */
export type FileLock = 'taken' | 'held' | 'unsupported';

const [LOCK_EX, LOCK_NB] = [2, 4] as const;
const { EAGAIN, EINTR, EINVAL, ENOLCK, ENOSYS, ENOTSUP, EOPNOTSUPP } = constants.errno;
const withoutLocks: readonly number[] = [EINVAL, ENOLCK, ENOSYS, ENOTSUP, EOPNOTSUPP];

let flock: ((file: number, operation: number) => number) | null = null;

/**
 * Locks an open file for this process alone, by flock(2): the system unlocks it when the file is closed, or its process ends,
 * however it ends. With `waits` it blocks while another process holds the lock. Throws a RooflineError for what is no open file.
 */
export function lockFile(file: number, { waits = false }: { readonly waits?: boolean } = {}): FileLock {
  if (process.platform === 'win32') return 'unsupported';
  flock ??= ffi().load(null).func('int flock(int file, int operation)') as NonNullable<typeof flock>;
  for (;;) {
    if (flock(file, waits ? LOCK_EX : LOCK_EX | LOCK_NB) === 0) return 'taken';
    const code = ffi().errno();
    if (code === EAGAIN) return 'held';
    if (withoutLocks.includes(code)) return 'unsupported';
    if (code !== EINTR)
      throw new RooflineError('FILE', `lockFile: file ${file} cannot be locked (errno ${code}).`);
  }
}
