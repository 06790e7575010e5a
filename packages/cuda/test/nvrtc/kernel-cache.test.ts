import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DeviceError } from '../../src/base/errors.ts';
import { KernelCache, cacheFolder, cacheKey } from '../../src/nvrtc/kernel-cache.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'roofline-cache-'));
});

afterEach(() => {
  chmodSync(folder, 0o755);
  rmSync(folder, { recursive: true });
});

const image = new Uint8Array([1, 2, 3, 4]);

describe('KernelCache', () => {
  it('gives back what was written, and nothing else', () => {
    const cache = new KernelCache(join(folder, 'deeper'));
    cache.write('a', image);
    expect([...cache.read('a')!]).toEqual([...image]);
    expect(cache.read('b')).toBeUndefined();
  });

  it('takes a damaged or cut file for none', () => {
    const cache = new KernelCache(folder);
    cache.write('a', image);
    const path = join(folder, readdirSync(folder)[0]!);
    for (const damaged of [Buffer.alloc(36, 9), Buffer.alloc(3), Buffer.alloc(0)]) {
      writeFileSync(path, damaged);
      expect(cache.read('a')).toBeUndefined();
    }
    cache.write('a', image);
    expect(cache.read('a')).toBeDefined();
  });

  it('leaves no temporary file behind', () => {
    const cache = new KernelCache(folder);
    cache.write('a', image);
    cache.write('a', image);
    expect(readdirSync(folder)).toEqual(['a.cubin']);
  });

  it('goes without a folder that cannot be made', () => {
    writeFileSync(join(folder, 'file'), '');
    const cache = new KernelCache(join(folder, 'file', 'below'));
    cache.write('a', image);
    expect(cache.read('a')).toBeUndefined();
  });
});

it.runIf(process.platform === 'linux')('a cache below /proc, where mkdir never succeeds, is none', () => {
  const cache = new KernelCache('/proc/no/such');
  cache.write('a', image);
  expect(cache.read('a')).toBeUndefined();
});

describe('cacheKey', () => {
  it('tells parts apart that would join to the same text', () => {
    expect(cacheKey(['ab', 'c'])).not.toBe(cacheKey(['a', 'bc']));
    expect(cacheKey(['ab', 'c'])).toBe(cacheKey(['ab', 'c']));
  });
});

describe('cacheFolder', () => {
  it('prefers ROOFLINE_CACHE_DIR, then XDG_CACHE_HOME, then the home folder', () => {
    expect(cacheFolder({ ROOFLINE_CACHE_DIR: '/r', XDG_CACHE_HOME: '/x' })).toBe('/r/kernels');
    expect(cacheFolder({ XDG_CACHE_HOME: '/x' })).toBe('/x/roofline/kernels');
    expect(cacheFolder({ XDG_CACHE_HOME: 'x' })).toBe(cacheFolder({}));
    expect(cacheFolder({})).toMatch(/\/\.cache\/roofline\/kernels$/);
  });

  it('needs no home folder but in the place of both, and says what to set', () => {
    // As for a user of a container whom nobody has told the system of.
    const spy = vi.spyOn(os, 'homedir').mockImplementation(() => {
      throw new Error('uv_os_homedir returned ENOENT');
    });
    syncBuiltinESMExports();
    try {
      expect(cacheFolder({ ROOFLINE_CACHE_DIR: '/r' })).toBe('/r/kernels');
      expect(cacheFolder({ XDG_CACHE_HOME: '/x' })).toBe('/x/roofline/kernels');
      expect(() => cacheFolder({})).toThrow(DeviceError);
      expect(() => cacheFolder({})).toThrow('set ROOFLINE_CACHE_DIR to a folder for compiled kernels');
    } finally {
      spy.mockRestore();
      syncBuiltinESMExports();
    }
  });
});
