import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export type Definitions = Readonly<Record<string, string | number>>;

/** A kernel's source under definitions of its own, as runtime compilation sees it. */
export interface KernelVariant {
  readonly source: string;
  readonly defines: Definitions;
}

/**
 * Where reports of what has compiled are kept, for all checkouts, as the emulator's kernels are: the same text, headers,
 * options and nvcc give the same again.
 */
const cache = join(tmpdir(), 'roofline-nvcc-reports');
/** The headers that kernels of all packages include. */
export const sharedKernels = fileURLToPath(new URL('../packages/cuda/kernels/', import.meta.url));

const { status, stdout: version } = spawnSync('nvcc', ['--version'], { encoding: 'utf8' });

export const foundNvcc = status === 0;

export interface NvccOptions {
  /** Folders of kernels whose headers are included, with their rooms; those of `cuda` are always among them. */
  readonly kernels?: readonly URL[];
  /** GPUs that run the PTX of `virtual`, such as '100' and '120' for '100'. Default: that alone. */
  readonly real?: readonly string[];
  /**
   * Whether code is optimized in full, as GPUs run it, and the report says what it takes; else it only has to compile.
   */
  readonly optimized?: boolean;
  /** Of code that only has to compile: whether kernels are large, which compile fastest with the fewest optimizations. */
  readonly large?: boolean;
}

/**
 * Compiles variants for an architecture such as '90a' in one run, each in a namespace of its own, since nvcc's start takes
 * longer than most kernels; gives what it reports. Rejects where it warns or fails.
 */
export async function compileByNvcc(
  virtual: string,
  variants: readonly KernelVariant[],
  { kernels = [], real = [virtual], optimized = false, large = false }: NvccOptions = {},
): Promise<string> {
  const folders = [sharedKernels, ...kernels.map((url) => fileURLToPath(url))];
  const headers = folders.flatMap((folder) =>
    globSync('**/*.cuh', { cwd: folder }).map((file) => join(folder, file)),
  );
  const texts = headers.map((path) => readFileSync(path, 'utf8'));
  const source = joinVariants(variants, texts);
  const flags = [
    `-gencode=arch=compute_${virtual},code=[${real.map((name) => `sm_${name}`).join()}]`,
    ...['-std=c++17', '-fatbin', '-Werror=all-warnings'],
    ...(optimized ? ['-Xptxas', '-v'] : quickFlags(large ? 'max' : 'mid')),
  ];
  const key = createHash('sha256')
    .update(JSON.stringify([version, flags, source, texts]))
    .digest('hex');
  return keptReport(key) ?? keepReport(key, await compile(source, folders, flags));
}

async function compile(
  source: string,
  folders: readonly string[],
  flags: readonly string[],
): Promise<string> {
  const rooms = folders.flatMap((folder) => [
    folder,
    ...globSync('*', { cwd: folder })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isDirectory()),
  ]);
  const work = mkdtempSync(join(tmpdir(), 'roofline-nvcc-'));
  try {
    const path = join(work, 'kernels.cu');
    writeFileSync(path, source);
    const includes = rooms.flatMap((room) => ['-I', room]);
    const run = promisify(execFile);
    const { stdout, stderr } = await run('nvcc', [...flags, ...includes, '-o', `${path}.fatbin`, path], {
      maxBuffer: 2 ** 28,
    });
    return stdout + stderr;
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** The most bytes of registers that each variant of an optimized report spills, in their order. */
export function spilledBytes(report: string, count: number): number[] {
  const spills = Array.from({ length: count }, () => NaN);
  const entries = report.matchAll(
    /entry function '_ZN\d+variant_(\d+)_[^]*?(\d+) bytes spill stores, (\d+) bytes spill loads/g,
  );
  for (const [, variant, stores, loads] of entries)
    spills[Number(variant)] = Math.max(spills[Number(variant)] || 0, Number(stores), Number(loads));
  return spills;
}

/** One translation unit of all variants; headers are read for each, under its definitions. */
function joinVariants(variants: readonly KernelVariant[], headers: readonly string[]): string {
  const guards = headers.flatMap((text) =>
    [...text.matchAll(/#define (ROOFLINE_\w+)/g)].map(([, guard]) => guard!),
  );
  return variants
    .map(({ source, defines }, i) => {
      const own = [...source.matchAll(/^\s*#define (\w+)/gm)].map(([, macro]) => macro!);
      return [
        ...Object.entries(defines).map(([macro, value]) => `#define ${macro} ${value}`),
        `namespace variant_${i}_ {`,
        source.replaceAll('extern "C" ', ''),
        '}',
        ...[...Object.keys(defines), ...own, ...guards].map((macro) => `#undef ${macro}`),
      ].join('\n');
    })
    .join('\n');
}

/**
 * Halves the time where code only has to compile; older compilers do not have it. Of many small kernels `max` leaves more
 * code to assemble than it saves in optimizing them.
 */
function quickFlags(level: 'mid' | 'max'): string[] {
  const { stdout: help } = spawnSync('nvcc', ['--help'], { encoding: 'utf8' });
  return help.includes('--Ofast-compile') ? [`--Ofast-compile=${level}`] : [];
}

function keptReport(key: string): string | undefined {
  try {
    return readFileSync(join(cache, key), 'utf8');
  } catch {
    return undefined;
  }
}

function keepReport(key: string, report: string): string {
  mkdirSync(cache, { recursive: true });
  const temporary = join(cache, `${key}.${process.pid}`);
  writeFileSync(temporary, report);
  renameSync(temporary, join(cache, key));
  return report;
}
