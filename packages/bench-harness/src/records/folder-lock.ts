import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { lockFile } from '@roofline/cuda/host';
import { orUsageError } from '../attempt.ts';
import { UsageError } from '../errors.ts';

/** What a lock of ours holds; older versions wrote JSON. */
const HOLDER = /^(process \d+ on |\{"pid":|$)/;

/**
 * Takes the folder for this process and returns the way to give it back. The system takes the lock from a process that
 * ends, however it ends. Throws UsageError while another process holds it, and where no lock can be made. Warns where files
 * cannot be locked, as on Windows and some network disks: nothing keeps others out there.
 */
export function lockFolder(folder: string): () => void {
  const path = join(folder, '.lock');
  for (;;) {
    const file = openLock(path);
    try {
      const holder = readFileSync(file, 'utf8');
      if (!HOLDER.test(holder)) throw new UsageError(`${path} is no lock of Roofline's. ${remedy}`);
      if (!isFree(file, folder))
        throw new UsageError(
          `${folder} is in use by ${holder || 'another process'}. Wait for it, or take another --out.`,
        );
      // Before it was locked, its holder may have removed it.
      if (isAt(path, file)) {
        ftruncateSync(file);
        writeSync(file, `process ${process.pid} on ${hostname()}`, 0);
        return () => release(path, file);
      }
    } catch (error) {
      closeSync(file);
      throw error;
    }
    closeSync(file);
  }
}

const remedy = 'Remove it, or take another --out.';

function openLock(path: string): number {
  return orUsageError(
    () => openSync(path, 'a+'),
    (code) => `Cannot make the lock ${path} (${code}). ${remedy}`,
  );
}

/** Whether no other process holds it; says so where the system cannot tell. */
function isFree(file: number, folder: string): boolean {
  const lock = lockFile(file);
  if (lock === 'unsupported')
    process.emitWarning(
      `${folder} is where files cannot be locked: nothing keeps another process from measuring into it at the same time. ` +
        'Start one at a time, or choose an --out on another disk.',
      { code: 'ROOFLINE_NO_LOCKS' },
    );
  return lock !== 'held';
}

/** The folder may have been replaced since the lock was made. */
function release(path: string, file: number): void {
  if (isAt(path, file)) rmSync(path, { force: true });
  closeSync(file);
}

function isAt(path: string, file: number): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  return there !== undefined && there.ino === fstatSync(file).ino;
}
