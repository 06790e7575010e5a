import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const kernels = fileURLToPath(new URL('../../kernels/', import.meta.url));
const core = fileURLToPath(new URL('../../../tensor-core/kernels/', import.meta.url));

export const foundNvcc = spawnSync('nvcc', ['--version']).status === 0;

export type Definitions = Record<string, string | number>;

/** What ptxas says of a kernel: how it uses registers, and that it serialises products (C75xx), which halves its speed. */
export async function compileForHopper(file: string, defines: Definitions): Promise<string> {
  const macros = Object.entries(defines).map(([name, value]) => `-D${name}=${value}`);
  const { stdout, stderr } = await promisify(execFile)('nvcc', [
    ...['-gencode=arch=compute_90a,code=sm_90a', '-std=c++17', '-cubin', '-Werror=all-warnings'],
    ...['-Xptxas', '-v', '-o', '/dev/null', `-I${kernels}`, `-I${core}`, ...macros, `${kernels}${file}`],
  ]);
  return stdout + stderr;
}

export function spilledBytes(report: string): number {
  const spills = [...report.matchAll(/(\d+) bytes spill stores/g)].map((match) => Number(match[1]));
  return spills.length === 0 ? Infinity : Math.max(...spills);
}

/** Each set of definitions once. */
export function distinct(all: readonly Definitions[]): [string, Definitions][] {
  return [...new Map(all.map((defines) => [JSON.stringify(Object.values(defines)), defines]))];
}
