import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { ifPossible } from '../attempt.ts';
import { z } from 'zod';
import { ceilingsSchema, largestSpread, type Ceilings } from '../measuring/ceilings.ts';
import { makeFolders } from '@roofline/cuda/host';
import { deviceIdentity, type Environment } from '../records/environment.ts';

/** Ceilings by device, driver, the variables that choose kernels, and the version of the code that measured them. */
const cacheSchema = z.record(z.string(), ceilingsSchema);

/**
 * Next to the folder of compiled kernels, which tensor-core finds by the same variables: the command starts without it.
 * Throws a SystemError where none is set and the user has no home folder.
 */
export function ceilingsCachePath(): string {
  const { ROOFLINE_CACHE_DIR, XDG_CACHE_HOME = '' } = process.env;
  if (ROOFLINE_CACHE_DIR) return join(ROOFLINE_CACHE_DIR, 'ceilings.json');
  const caches = isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(homedir(), '.cache');
  return join(caches, 'roofline', 'ceilings.json');
}

/** A machine with other work has a larger spread, and lower ceilings than its own: 4 to 15 % are usual, 80 % were seen. */
const mostSpread = 0.3;
/** For how long such ceilings are used: commands that follow soon would find the same work, and measure in vain. */
const busyMs = 3_600_000;

/** Null when this device was not measured yet, or an hour ago and while it had other work, or the cache cannot be read. */
export function readCachedCeilings(environment: Environment): Ceilings | null {
  const ceilings = readCache()[cacheKey(environment)];
  if (!ceilings) return null;
  return largestSpread(ceilings) <= mostSpread || cacheAgeMs() < busyMs ? ceilings : null;
}

function cacheAgeMs(): number {
  return Date.now() - statSync(ceilingsCachePath()).mtimeMs;
}

/** Adds to what is kept of this device. A cache that cannot be written costs time, never the sweep. */
export function cacheCeilings(environment: Environment, ceilings: Ceilings): void {
  try {
    const path = ceilingsCachePath();
    const aside = `${path}.${process.pid}`;
    makeFolders(dirname(path));
    writeFileSync(aside, JSON.stringify({ ...readCache(), [cacheKey(environment)]: ceilings }, null, 2));
    renameSync(aside, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

function cacheKey(environment: Environment): string {
  const driver = environment.device.properties['driverCuda'] ?? 'no driver';
  const version = environment.packages['@roofline/tensor-core'];
  const variables = Object.entries(environment.variables).map(([name, value]) => ` | ${name}=${value}`);
  return `${deviceIdentity(environment)} | ${driver} | tensor-core ${version}${variables.join('')}`;
}

function readCache(): Record<string, Ceilings> {
  return ifPossible(() => cacheSchema.parse(JSON.parse(readFileSync(ceilingsCachePath(), 'utf8')))) ?? {};
}
