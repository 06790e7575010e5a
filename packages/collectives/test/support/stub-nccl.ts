import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const hasCompiler = spawnSync('g++', ['--version']).status === 0;

/** For the names of suites, so that a skip says why. */
export const compilerNote = hasCompiler ? '' : ' (skipped: no g++)';

const source = (name: string) => fileURLToPath(new URL(`stubs/${name}.cc`, import.meta.url));

/** Builds the stand-ins for libnccl and libcuda; gives the variables by which ranks find them. */
export function buildStubs(): Record<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-stubs-'));
  const build = (name: string, library: string) =>
    execFileSync('g++', ['-std=c++17', '-O1', '-shared', '-fPIC', '-o', join(folder, library), source(name)]);
  build('nccl', 'libnccl.so.2');
  build('cuda', 'libcuda.so.1');
  const files = join(folder, 'files');
  mkdirSync(files);
  return { ROOFLINE_CUDA_LIBRARIES: folder, STUB_NCCL_FOLDER: files };
}
