import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { DeviceError } from '../base/errors.ts';
import type { Environment } from '../base/host/environment.ts';
import { makeFolders } from '../base/host/make-folders.ts';

const digestBytes = 32;

/**
 * Where compiled kernels are kept: ROOFLINE_CACHE_DIR, or `roofline` in XDG's cache folder. XDG's specification has
 * relative folders ignored: each working directory would have a cache of its own. Throws a DeviceError where neither is set and
 * the user has no home folder.
 */
export function cacheFolder(environment: Environment = process.env): string {
  const { ROOFLINE_CACHE_DIR, XDG_CACHE_HOME = '' } = environment;
  if (ROOFLINE_CACHE_DIR) return join(ROOFLINE_CACHE_DIR, 'kernels');
  const caches = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homeFolder(), '.cache');
  return join(caches, 'roofline', 'kernels');
}

function homeFolder(): string {
  try {
    return homedir();
  } catch (cause) {
    throw new DeviceError(
      `There is no home folder (${(cause as Error).message}); set ROOFLINE_CACHE_DIR to a folder for compiled kernels.`,
      { cause },
    );
  }
}

/** A name for the outcome of compiling: different inputs never share one. */
export function cacheKey(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex');
}

/**
 * Compiled kernels on disk, one file each: the SHA-256 digest of the image, then the image. Files appear by an
 * atomic rename, so that several processes may share the folder.
 */
export class KernelCache {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** The image kept under `key`; undefined if there is none or the file is damaged. */
  read(key: string): Uint8Array | undefined {
    let file: Buffer;
    try {
      file = readFileSync(this.#path(key));
    } catch {
      return undefined;
    }
    const image = file.subarray(digestBytes);
    return digest(image).equals(file.subarray(0, digestBytes)) ? image : undefined;
  }

  /** Keeps an image; gives whether it could: a folder that cannot be written to costs time at the next start, and is no error. */
  write(key: string, image: Uint8Array): boolean {
    const temporary = `${this.#path(key)}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      makeFolders(this.folder);
      writeFileSync(temporary, Buffer.concat([digest(image), image]));
      renameSync(temporary, this.#path(key));
      return true;
    } catch {
      removeIfThere(temporary);
      return false;
    }
  }

  #path(key: string): string {
    return join(this.folder, `${key}.cubin`);
  }
}

function removeIfThere(path: string): void {
  try {
    rmSync(path);
  } catch {
    // The folder itself may be missing or read-only; then there is nothing to remove.
  }
}

function digest(image: Uint8Array): Buffer {
  return createHash('sha256').update(image).digest();
}
