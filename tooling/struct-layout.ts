import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [core, cuda] = ['tensor-core', 'cuda'].map(
  (name) => new URL(`../packages/${name}/`, import.meta.url),
) as [URL, URL];

/** Where the members of a structure are, in bytes, as a compiler of C++ lays it out. */
export interface StructLayout {
  readonly byteLength: number;
  readonly offsets: Readonly<Record<string, number>>;
}

/** A header that declares structures, its macros, and folders of kernels, apart from cuda's and tensor-core's, whose headers it includes. */
export interface StructHeader {
  readonly file: string;
  readonly defines?: Readonly<Record<string, string | number>>;
  readonly kernels?: readonly URL[];
}

/** Compiles a kernels' header by g++, with CUDA's types as the emulated GPU has them, and returns a structure's layout. */
export function structLayout(
  { file, defines = {}, kernels = [] }: StructHeader,
  name: string,
  members: readonly string[],
): StructLayout {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-struct-'));
  try {
    // All in one folder, as kernels find them; the emulated GPU's stand-ins for headers of PTX come last.
    for (const url of [
      new URL('kernels/', cuda),
      new URL('kernels/', core),
      ...kernels,
      new URL('emulator/', cuda),
    ]) {
      for (const header of globSync(`${fileURLToPath(url)}**/*.{cuh,hpp}`))
        copyFileSync(header, join(folder, basename(header)));
    }
    const macros = Object.entries(defines).map(([macro, value]) => `#define ${macro} ${value}\n`);
    const lines = [`sizeof(${name})`, ...members.map((member) => `offsetof(${name}, ${member})`)];
    writeFileSync(
      join(folder, 'layout.cpp'),
      `#include <cstddef>\n#include <cstdio>\n${macros.join('')}#include "${file}"\n` +
        `int main() {\n${lines.map((line) => `  std::printf("%zu\\n", ${line});\n`).join('')}}\n`,
    );
    const flags = ['-std=c++17', '-O1', '-w', '-include', 'cuda-on-host.hpp'];
    execFileSync('g++', [...flags, '-o', 'layout', 'layout.cpp'], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const printed = execFileSync(join(folder, 'layout'), { encoding: 'utf8' });
    const [byteLength, ...offsets] = printed.trim().split('\n').map(Number);
    return {
      byteLength: byteLength!,
      offsets: Object.fromEntries(members.map((member, i) => [member, offsets[i]!])),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
