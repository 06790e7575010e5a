import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { hopperBackwardDefines, hopperBackwardRowsDefines } from '../../src/cuda/hopper-backward.ts';
import { hopperForwardDefines } from '../../src/cuda/hopper-forward.ts';
import { type HopperPlan, planHopper } from '../../src/cuda/hopper-plan.ts';

const found = spawnSync('nvcc', ['--version']).status === 0;
const kernels = fileURLToPath(new URL('../../kernels/', import.meta.url));
const core = fileURLToPath(new URL('../../../tensor-core/kernels/', import.meta.url));

/** What ptxas says of a kernel: how it uses registers, and that it serialises products (C75xx), which halves its speed. */
async function compile(file: string, defines: Record<string, string | number>): Promise<string> {
  const macros = Object.entries(defines).map(([name, value]) => `-D${name}=${value}`);
  const { stdout, stderr } = await promisify(execFile)('nvcc', [
    ...['-gencode=arch=compute_90a,code=sm_90a', '-std=c++17', '-cubin', '-Werror=all-warnings'],
    ...['-Xptxas', '-v', '-o', '/dev/null', `-I${kernels}`, `-I${core}`, ...macros, `${kernels}${file}`],
  ]);
  return stdout + stderr;
}

function spilledBytes(report: string): number {
  const spills = [...report.matchAll(/(\d+) bytes spill stores/g)].map((match) => Number(match[1]));
  return spills.length === 0 ? Infinity : Math.max(...spills);
}

const problems = [
  ...[64, 128].flatMap((headDimension) =>
    [true, false].flatMap((causal) => [
      { headDimension, causal, length: 256 },
      { headDimension, causal, length: 8192 },
    ]),
  ),
  { headDimension: 80, causal: true, length: 1024 },
  { headDimension: 80, causal: true, length: 2048 },
  { headDimension: 80, causal: false, length: 1024 },
].flatMap((problem) => (['bfloat16', 'float16'] as const).map((dtype) => ({ ...problem, dtype })));

const variants = problems.map(({ headDimension, causal, length, dtype }) => {
  const sizes = { batch: 1, heads: 16, keyHeads: 16, queries: length, keys: length, headDimension };
  const settings = { causal, scale: 0.125 };
  const gpu = { computeCapability: 90, multiprocessors: 132, maxSharedBytesPerBlock: 227 * 1024 };
  const plan = planHopper({
    kernels: 'hopper',
    ...sizes,
    ...settings,
    ...gpu,
    dtype,
    deterministic: false,
  }) as HopperPlan;
  return { plan, call: { dtype, sizes, settings } };
});

/** Each set of definitions once. */
function distinct(
  all: readonly Record<string, string | number>[],
): [string, Record<string, string | number>][] {
  return [...new Map(all.map((defines) => [JSON.stringify(Object.values(defines)), defines]))];
}

describe.skipIf(!found)('the Hopper kernels compile (needs nvcc)', () => {
  it.each(distinct(variants.map(({ plan, call }) => hopperForwardDefines(call, plan.forward))))(
    'forward: %s',
    async (_, defines) => {
      const report = await compile('flash_hopper_forward.cu', defines);
      expect(report).not.toMatch(/C75\d\d/);
      // The registers of 192 × 96 with Q among them do not quite suffice: the rows' maxima and sums are spilled.
      expect(spilledBytes(report)).toBeLessThanOrEqual(defines.BLOCK_N === 96 ? 96 : 0);
    },
  );

  it.each(distinct(variants.map(({ plan, call }) => hopperBackwardDefines(call, plan.backward))))(
    'backward: %s',
    async (_, defines) => {
      const report = await compile('flash_hopper_backward.cu', defines);
      expect(report).not.toMatch(/C75\d\d/);
      expect(spilledBytes(report)).toBe(0);
    },
  );

  it.each(distinct(variants.map(({ plan, call }) => hopperBackwardRowsDefines(call, plan.backward))))(
    'before and after backward: %s',
    async (_, defines) => {
      expect(spilledBytes(await compile('flash_hopper_backward_rows.cu', defines))).toBe(0);
    },
  );
});
