import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { ceilingsSchema, type Ceilings } from '../measuring/ceilings.ts';
import { makeFolders } from '../records/make-folders.ts';
import { deviceIdentity, type Environment } from '../records/environment.ts';

/** Ceilings by device, driver, the variables that choose kernels, and the version of the code that measured them. */
const cacheSchema = z.record(z.string(), ceilingsSchema);

export function ceilingsCachePath(): string {
  const given = process.env['XDG_CACHE_HOME'] ?? '';
  // As XDG's specification has it; and each working directory would have a cache of its own.
  const root = isAbsolute(given) ? given : join(homedir(), '.cache');
  return join(root, 'roofline', 'ceilings.json');
}

/** Null when this device was not measured yet, or the cache cannot be read. */
export function readCachedCeilings(environment: Environment): Ceilings | null {
  return readCache()[cacheKey(environment)] ?? null;
}

/** Adds to what is kept of this device. A cache that cannot be written costs time, never the sweep. */
export function cacheCeilings(environment: Environment, ceilings: Ceilings): void {
  const path = ceilingsCachePath();
  const aside = `${path}.${process.pid}`;
  try {
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
  try {
    return cacheSchema.parse(JSON.parse(readFileSync(ceilingsCachePath(), 'utf8')));
  } catch {
    return {};
  }
}
