import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  candidates,
  libraries,
  loadLibrary,
  searchFolders,
  sitePackages,
} from '../../src/driver/library-search.ts';
import { LibraryNotFoundError } from '../../src/base/errors.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'roofline-search-'));
});

afterEach(() => rmSync(root, { recursive: true }));

/** Makes an empty file, folders included; returns its path. */
function touch(...parts: string[]): string {
  const path = join(root, ...parts);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, '');
  return path;
}

describe('candidates', () => {
  it('puts ROOFLINE_CUDA_LIBRARIES first, then the loader, then the toolkit, then wheels', () => {
    const override = touch('mine', 'libnvrtc.so.13');
    const toolkit = touch('toolkit', 'lib64', 'libnvrtc.so.12');
    const wheel = touch(
      'venv',
      'lib',
      'python3.12',
      'site-packages',
      'nvidia',
      'cu13',
      'lib',
      'libnvrtc.so.13',
    );
    const found = candidates(libraries.nvrtc, {
      ROOFLINE_CUDA_LIBRARIES: join(root, 'mine'),
      CUDA_HOME: join(root, 'toolkit'),
      VIRTUAL_ENV: join(root, 'venv'),
    });
    const positions = [override, 'libnvrtc.so.13', 'libnvrtc.so', wheel, toolkit].map((path) =>
      found.indexOf(path),
    );
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(positions).not.toContain(-1);
    expect(positions[0]).toBe(0);
  });
});

describe('sitePackages', () => {
  it('finds the environment of the python3 on the path, newest version first', () => {
    touch('env', 'bin', 'python3');
    const folders = ['python3.9', 'python3.12'].map((version) => {
      touch('env', 'lib', version, 'site-packages', 'x');
      return join(root, 'env', 'lib', version, 'site-packages');
    });
    const found = sitePackages({ PATH: join(root, 'env', 'bin') });
    expect(found.slice(0, 2)).toEqual([folders[1], folders[0]]);
  });

  it('finds every wheel folder under nvidia', () => {
    for (const name of ['cu13', 'nccl'])
      touch('v', 'lib', 'python3.12', 'site-packages', 'nvidia', name, 'lib', 'x');
    const folders = searchFolders({ VIRTUAL_ENV: join(root, 'v') });
    expect(folders.filter((folder) => folder.startsWith(root))).toHaveLength(2);
  });
});

describe('loadLibrary', () => {
  it('says where it looked and what to do', () => {
    const description = { name: 'libabsent', files: ['libroofline-absent.so.1'], remedy: 'Install it.' };
    expect(() => loadLibrary(description)).toThrow(LibraryNotFoundError);
    expect(() => loadLibrary(description)).toThrow(/libroofline-absent\.so\.1.*Install it\. `diagnose\(\)`/);
  });
});
