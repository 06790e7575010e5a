import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { foundNvcc, sharedKernels } from '../../../../../../tooling/nvcc.ts';
import type { DType } from '../../../../src/base/dtype.ts';
import { densePointwiseSource } from '../../../../src/backends/cuda/generated/pointwise-kernel.ts';

/** The lowest bits of an instruction of sm_90: products that are added to something in one rounding. */
const joined = { FFMA: 0x23, DFMA: 0x2b } as const;
const opcodeBits = 0x1ff;
const instructionBytes = 16;

/** How often each of `joined` stands in the code of a cubin, an ELF file. */
function countJoined(cubin: Buffer): Record<string, number> {
  const at = Number(cubin.readBigUInt64LE(0x28));
  const [entryBytes, count] = [cubin.readUInt16LE(0x3a), cubin.readUInt16LE(0x3c)];
  const counts: Record<string, number> = { instructions: 0, FFMA: 0, DFMA: 0 };
  for (let entry = at; entry < at + count * entryBytes; entry += entryBytes) {
    // Sections of a program's bits that are executable.
    const isCode = cubin.readUInt32LE(entry + 4) === 1 && (cubin.readBigUInt64LE(entry + 8) & 4n) !== 0n;
    if (!isCode) continue;
    const [offset, bytes] = [0x18, 0x20].map((field) => Number(cubin.readBigUInt64LE(entry + field)));
    for (let i = offset!; i < offset! + bytes!; i += instructionBytes) {
      counts['instructions']!++;
      const opcode = cubin.readUInt32LE(i) & opcodeBits;
      for (const [name, bits] of Object.entries(joined)) if (opcode === bits) counts[name]!++;
    }
  }
  return counts;
}

function compiled(source: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-rounding-'));
  try {
    const path = join(folder, 'kernel.cu');
    writeFileSync(path, source);
    const includes = ['-I', sharedKernels];
    const { stderr } = spawnSync('nvcc', ['-arch=sm_90', '-cubin', ...includes, '-o', `${path}.cubin`, path]);
    expect(String(stderr)).toBe('');
    return readFileSync(`${path}.cubin`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.skipIf(!foundNvcc)('a chain of ops in one kernel (needs nvcc)', () => {
  const chain = (dtype: DType, values: readonly string[], last: string) =>
    densePointwiseSource(
      {
        name: 'chain',
        inputs: [dtype, dtype, dtype],
        outputs: [dtype],
        values: values.map((text, i) => ({ name: `t${i}`, dtype, text })),
        expressions: [last],
        scalars: 0,
      },
      [0, 1, 2],
      new Set(),
      dtype === 'float32' ? 4 : 2,
    );

  it.each(['float32', 'float64'] as const)(
    'rounds a %s product before it is added, as memory would',
    (dtype) => {
      const name = dtype === 'float32' ? 'FFMA' : 'DFMA';
      const counts = countJoined(compiled(chain(dtype, ['a * b', 't0 + c', 't1 * t1'], 't2 - t0')));
      expect(counts['instructions']).toBeGreaterThan(20);
      expect(counts[name]).toBe(0);
      // What is one op's may be one operation.
      expect(countJoined(compiled(chain(dtype, [], 'a * b + c')))[name]).toBeGreaterThan(0);
    },
  );
});
