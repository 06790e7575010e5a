import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const hasCompiler = spawnSync('g++', ['--version']).status === 0;

/** For the names of suites, so that a skip says why. */
export const compilerNote = hasCompiler ? '' : ' (skipped: no g++)';

const libraries = { nccl: 'libnccl.so.2', cuda: 'libcuda.so.1' };
const source = (name: string) => fileURLToPath(new URL(`stubs/${name}.cc`, import.meta.url));

/** Gives the variables by which ranks find stand-ins for libnccl and libcuda, and what these leave is nobody else's. */
export function buildStubs(): Record<string, string> {
  return {
    ROOFLINE_CUDA_LIBRARIES: builtLibraries(),
    STUB_NCCL_FOLDER: mkdtempSync(join(tmpdir(), 'roofline-stub-files-')),
  };
}

/** Compiles the stand-ins once a machine; gives their folder. */
function builtLibraries(): string {
  const flags = ['-std=c++17', '-O1', '-shared', '-fPIC'];
  const hash = createHash('sha256').update(flags.join());
  for (const name of Object.keys(libraries)) hash.update(readFileSync(source(name)));
  const folder = join(tmpdir(), `roofline-stubs-${hash.digest('hex').slice(0, 16)}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, file] of Object.entries(libraries)) {
    const library = join(folder, file);
    if (existsSync(library)) continue;
    // Several processes may do so at a time: none sees half of what another makes.
    const own = `${library}.${process.pid}`;
    execFileSync('g++', [...flags, '-o', own, source(name)]);
    renameSync(own, library);
  }
  return folder;
}
