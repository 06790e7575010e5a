import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DeviceError, KernelCompileError } from '../base/errors.ts';
import { packageRoot } from '../base/host/package-root.ts';
import type { CompileRequest, KernelCompiler } from '../nvrtc/nvrtc.ts';

const runtimeFile = (file: string) => new URL(`emulator/${file}`, packageRoot);
const sharedHeader = fileURLToPath(runtimeFile('cuda-on-host.hpp'));
/** Headers of PTX, which the emulator has in C++. */
const standIns = ['exp2.cuh', 'float16.cuh', 'mma.cuh'];
// x86 takes misaligned addresses and a GPU does not: such an access traps, and the launch fails.
const flags = [
  ...['-std=c++17', '-O1', '-ffp-contract=off', '-w', '-shared', '-fPIC'],
  ...['-fsanitize=alignment', '-fsanitize-undefined-trap-on-error'],
];
/** A kernel finds the libraries of C and C++ through the runtime: to link them takes as long as to compile it. */
const kernelFlags = [...flags, '-nostdlib', '-fno-exceptions', '-fno-asynchronous-unwind-tables'];
/** Contains everything that `prepare` and `entries` look for in kernels. */
const sample =
  'extern __shared__ __align__(16) float4 shared[]; __global__ void __launch_bounds__(32) sample() {}';

/** The host compiler's first version line; null if there is none. */
export function hostCompilerVersion(): string | null {
  try {
    return execFileSync('g++', ['--version'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).split('\n')[0]!;
  } catch {
    return null;
  }
}

/** Compiles kernels for the CPU: a shared library with `capture_NAME`, `copy_NAME` and `run_NAME` for each kernel NAME. */
export class EmulatedCompiler implements KernelCompiler {
  readonly version: string;
  /** The code that kernels share, loaded once a process. */
  readonly #runtime: string;

  /** Throws a DeviceError without g++. */
  constructor() {
    const compiler = hostCompilerVersion();
    if (compiler === null) {
      throw new DeviceError(
        'The emulated GPU compiles kernels with g++, which cannot be started: install it (apt-get install g++).',
      );
    }
    // What becomes of a sample, not this file: the same where it runs from its source and where it was built.
    const hash = createHash('sha256').update([...kernelFlags, prepare(sample), entries(sample)].join('\n'));
    for (const file of ['cuda-on-host.hpp', 'math-on-host.hpp', 'cuda-on-host.cpp', ...standIns])
      hash.update(readFileSync(runtimeFile(file)));
    hash.update(compiler);
    this.version = `emulator ${hash.digest('hex')}`;
    this.#runtime = compileRuntime(join(tmpdir(), `roofline-${this.version.replace(' ', '-')}`));
  }

  compile({ name, source, headers, options }: CompileRequest): Uint8Array {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-kernel-'));
    try {
      for (const [file, text] of headers) writeFileSync(join(folder, file), prepare(text));
      for (const file of standIns) writeFileSync(join(folder, file), readFileSync(runtimeFile(file)));
      writeFileSync(join(folder, 'kernel.cpp'), prepare(source) + entries(source));
      const defines = options.map((option) => option.replace('--define-macro=', '-D'));
      execFileSync(
        'g++',
        [
          ...kernelFlags,
          ...defines,
          '-include',
          sharedHeader,
          '-o',
          'kernel.so',
          'kernel.cpp',
          this.#runtime,
        ],
        {
          cwd: folder,
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      );
      return new Uint8Array(readFileSync(join(folder, 'kernel.so')));
    } catch (error) {
      throw new KernelCompileError(name, String((error as { stderr?: Buffer }).stderr ?? error), source);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

/** Compiles the runtime once a machine, into `folder`; gives its path. */
function compileRuntime(folder: string): string {
  const library = join(folder, 'cuda-on-host.so');
  if (existsSync(library)) return library;
  mkdirSync(folder, { recursive: true });
  // Several processes may do so at a time: none sees half a file of another.
  const temporary = `${library}.${process.pid}`;
  execFileSync('g++', [...flags, fileURLToPath(runtimeFile('cuda-on-host.cpp')), '-o', temporary]);
  renameSync(temporary, library);
  return library;
}

// Dynamic shared memory has its size from the launch, which `dynamic_shared` knows; it is declared inside kernels.
function prepare(text: string): string {
  return text.replace(
    /extern\s+__shared__\s+(?:(?:alignas|__align__)\s*\([^)]*\)\s*)?([^;]*?)(\w+)\s*\[\s*\]\s*;/g,
    '$1* const $2 = reinterpret_cast<$1*>(emulator::dynamic_shared());',
  );
}

function entries(source: string): string {
  const kernels = source.matchAll(/__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(/g);
  return [...new Set([...kernels].map(([, name]) => name))]
    .map(
      (name) => `
extern "C" void* capture_${name}(const char* packed, const char* const* pointers) {
  return emulator::Launch<${name}>::capture(packed, pointers);
}
extern "C" void* copy_${name}(const void* arguments) { return emulator::Launch<${name}>::copy(arguments); }
extern "C" int run_${name}(void* arguments, unsigned x, unsigned y, unsigned z, unsigned threads,
                           unsigned sharedBytes, unsigned seed) {
  return emulator::Launch<${name}>::run(arguments, {x, y, z}, threads, sharedBytes, seed);
}
`,
    )
    .join('');
}
