import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DType, type Tensor, cast, device, fromTypedArray, scope } from '@roofline/tensor-core';
import { afterAll, describe, expect, it } from 'vitest';
import { flashAttention } from '../../src/index.ts';
import { type AttentionProblem, describeProblem, normals, operandsOf, randomProblem } from '../problems.ts';

// PyTorch's own attention on the same GPU. Elsewhere, ROOFLINE_SDPA_DEVICE=cpu tries the test itself.
const where = process.env['ROOFLINE_SDPA_DEVICE'] ?? 'cuda';
const hasSdpa =
  'import torch; torch.nn.functional.scaled_dot_product_attention' +
  (where === 'cuda' ? '; torch.zeros(1).cuda()' : '');
const candidates = [process.env['ROOFLINE_PYTHON'], 'python3', '/usr/bin/python3', 'python'];
const python = candidates.find((name) => name && spawnSync(name, ['-c', hasSdpa]).status === 0);

const names = ['output', 'gradQ', 'gradK', 'gradV'] as const;
type Named<T> = Record<(typeof names)[number], T>;

interface Answer {
  /** Norms of PyTorch's differences from float64, in float32 the larger of its two kernels'. */
  readonly errors: Named<number>;
  /** Norms of the sums of magnitudes of what the results are sums of. */
  readonly terms: Named<number>;
}

const problemsOfDType = Number(process.env['ROOFLINE_SDPA_PROBLEMS'] ?? 70);
const longest = 600;
const dimensions = [16, 32, 40, 64, 64, 80, 96, 128, 128, 256];

/** Rows that see no key are NaN in PyTorch, and with a negative scale all may be. */
const isShared = ({ causal, queries, keys, scale = 1 }: AttentionProblem) =>
  scale > 0 && (!causal || queries <= keys);

function problems(first: number): AttentionProblem[] {
  const all = Array.from({ length: 3 * problemsOfDType }, (_, i) =>
    randomProblem(first + i, longest, dimensions),
  );
  return all.filter(isShared).slice(0, problemsOfDType);
}

const shapesOf = ({ batch, heads, keyHeads, queries, keys, headDimension }: AttentionProblem) => ({
  shapeQ: [batch, heads, queries, headDimension],
  shapeK: [batch, keyHeads, keys, headDimension],
});

const gradientOf = (output: Tensor, dtype: DType): Tensor =>
  cast(fromTypedArray(normals(output.size, 71), output.shape), dtype).to(output.device);

/** Writes the problems, as they are after rounding to the dtype, and lets PyTorch solve them. */
function askTorch(folder: string, asked: readonly AttentionProblem[], dtype: DType): Answer[] {
  asked.forEach((problem, i) =>
    scope(() => {
      const operands = operandsOf(problem, dtype, device('cpu'));
      const tensors = {
        q: operands[0],
        k: operands[1],
        v: operands[2],
        gradO: gradientOf(operands[0], dtype),
      };
      for (const [name, x] of Object.entries(tensors)) {
        writeFileSync(join(folder, `${i}.${name}`), Float32Array.from(x.toFlatArray() as number[]));
      }
    }),
  );
  const posed = asked.map((problem) => {
    const { causal, headDimension, scale = 1 / Math.sqrt(headDimension) } = problem;
    return { ...shapesOf(problem), causal, scale, dtype };
  });
  writeFileSync(join(folder, 'problems.json'), JSON.stringify(posed));
  const script = fileURLToPath(new URL('../torch/sdpa.py', import.meta.url));
  const { status, stderr } = spawnSync(python!, ['-B', script, folder, where], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`sdpa.py failed:\n${stderr}`);
  return JSON.parse(readFileSync(join(folder, 'torch.json'), 'utf8')) as Answer[];
}

function solve(problem: AttentionProblem, dtype: DType): Named<Float64Array> {
  return scope(() => {
    const leaves = operandsOf(problem, dtype, device(where as 'cuda')).map((x) => x.requiresGrad_());
    const [q, k, v] = leaves as [Tensor, Tensor, Tensor];
    const { causal, scale } = problem;
    const output = flashAttention(q, k, v, { causal, ...(scale === undefined ? {} : { scale }) });
    output.backward(gradientOf(output, dtype));
    const flat = (x: Tensor) => Float64Array.from(x.toFlatArray() as number[]);
    return { output: flat(output), gradQ: flat(q.grad!), gradK: flat(k.grad!), gradV: flat(v.grad!) };
  });
}

function read(path: string): Float64Array {
  const { buffer, byteOffset, byteLength } = readFileSync(path);
  return new Float64Array(buffer.slice(byteOffset, byteOffset + byteLength));
}

function distance(a: Float64Array, b: Float64Array): number {
  if (a.length !== b.length) throw new Error(`${a.length} values for ${b.length}`);
  return Math.sqrt(a.reduce((total, value, i) => total + (value - b[i]!) ** 2, 0));
}

/**
 * Gradients may be differences of what is equal, as where there is one key. PyTorch may have them as exact zeros by luck; a
 * float32 rounding of the terms is no fault of either.
 */
const float32Roundoff = 2 ** -24;

describe.skipIf(!python)('flashAttention against PyTorch on the same GPU (needs a Python with torch)', () => {
  const folders: string[] = [];
  afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

  it.each([
    ['bfloat16', 2000],
    ['float16', 3000],
    ['float32', 4000],
  ] as const)('is at most twice as far from float64 as PyTorch is, in %s', (dtype, first) => {
    const folder = mkdtempSync(join(tmpdir(), 'roofline-sdpa-'));
    folders.push(folder);
    const asked = problems(first);
    const theirs = askTorch(folder, asked, dtype);
    const ratios: Named<number[]> = { output: [], gradQ: [], gradK: [], gradV: [] };
    const beyond: string[] = [];
    asked.forEach((problem, i) => {
      const ours = solve(problem, dtype);
      for (const name of names) {
        const exact = read(join(folder, `${i}.${name}`));
        const [error, torchs] = [distance(ours[name], exact), theirs[i]!.errors[name]];
        ratios[name].push(error / torchs);
        if (error > 2 * torchs + float32Roundoff * theirs[i]!.terms[name]) {
          beyond.push(`${describeProblem(problem)}: ${name} is off by ${error}, PyTorch's by ${torchs}`);
        }
      }
    });
    for (const name of names) {
      const sorted = ratios[name].filter(Number.isFinite).sort((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(3);
      console.log(
        `${dtype} ${name}: error over PyTorch's: median ${at(0.5)}, 90 % ${at(0.9)}, largest ${at(1)}`,
      );
    }
    expect(beyond.join('\n')).toBe('');
    expect(asked.length).toBe(problemsOfDType);
  });
});
