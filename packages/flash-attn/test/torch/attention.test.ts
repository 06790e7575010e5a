import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  type DType,
  type Device,
  type Tensor,
  cast,
  device,
  fromTypedArray,
  scope,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { flashAttention } from '../../src/index.ts';
import { relativeError, unitRoundoff } from '../attempt.ts';
import { type AttentionProblem, normals, randomProblem } from '../problems.ts';

const candidates = [process.env['ROOFLINE_PYTHON'], 'python3', '/usr/bin/python3', 'python'];
const python = candidates.find((name) => name && spawnSync(name, ['-c', 'import torch']).status === 0);

const names = ['output', 'gradQ', 'gradK', 'gradV'] as const;
type Results = Record<(typeof names)[number], number[]>;

/** A problem with its operands and the gradient of its output, as they are after rounding to the dtype. */
interface Posed {
  readonly q: number[];
  readonly k: number[];
  readonly v: number[];
  readonly gradO: number[];
  readonly shapeQ: number[];
  readonly shapeK: number[];
  readonly causal: boolean;
  readonly scale: number;
  readonly dtype: DType;
}

function pose(problem: AttentionProblem, dtype: DType): Posed {
  const { batch, heads, keyHeads, queries, keys, headDimension, causal, magnitude, seed } = problem;
  const [shapeQ, shapeK] = [
    [batch, heads, queries, headDimension],
    [batch, keyHeads, keys, headDimension],
  ];
  const rounded = (shape: number[], which: number, size: number) =>
    scope(() => {
      const count = shape.reduce((product, length) => product * length, 1);
      return cast(fromTypedArray(normals(count, 17 * seed + which, size), shape), dtype).toFlatArray();
    });
  return {
    ...{
      q: rounded(shapeQ!, 0, magnitude),
      k: rounded(shapeK!, 1, magnitude),
      v: rounded(shapeK!, 2, magnitude),
    },
    ...{ gradO: rounded(shapeQ!, 3, 1), shapeQ: shapeQ!, shapeK: shapeK!, causal, dtype },
    scale: problem.scale ?? 1 / Math.sqrt(headDimension),
  };
}

function runOurs(posed: Posed, where: Device): Results {
  return scope(() => {
    const make = (values: number[], shape: number[]) =>
      cast(fromTypedArray(Float64Array.from(values), shape), posed.dtype).to(where);
    const leaves = [make(posed.q, posed.shapeQ), make(posed.k, posed.shapeK), make(posed.v, posed.shapeK)];
    const [q, k, v] = leaves.map((x) => x.requiresGrad_()) as [Tensor, Tensor, Tensor];
    const output = flashAttention(q, k, v, { causal: posed.causal, scale: posed.scale });
    output.backward(make(posed.gradO, posed.shapeQ));
    const flat = (x: Tensor) => x.toFlatArray();
    return { output: flat(output), gradQ: flat(q.grad!), gradK: flat(k.grad!), gradV: flat(v.grad!) };
  });
}

function runTorch(problems: readonly Posed[]): { exact: Results; own: Results }[] {
  const script = fileURLToPath(new URL('attention.py', import.meta.url));
  const input = JSON.stringify(problems);
  const { status, stdout, stderr } = spawnSync(python!, ['-B', script], {
    input,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`attention.py failed:\n${stderr}`);
  return JSON.parse(stdout) as { exact: Results; own: Results }[];
}

/**
 * Without rows that see no key, which are NaN in PyTorch's composition, and without weights that dominate a row, where the
 * gradients of q and k are differences of what is nearly equal: the other tests bound those.
 */
const isPlain = ({ causal, queries, keys, magnitude, scale = 0 }: AttentionProblem) =>
  keys > 3 && (!causal || queries <= keys) && magnitude <= 1 && Math.abs(scale) <= 0.25;

describe.skipIf(!python)('flashAttention compared with PyTorch (needs a Python with torch)', () => {
  const problems = Array.from({ length: 60 }, (_, i) => randomProblem(600 + i, 60, [8, 16, 20])).filter(
    isPlain,
  );
  const devices: [string, Device][] = [['the CPU', device('cpu')]];
  if (hostCompilerVersion()) devices.push(['the emulated GPU', openEmulatedDevice()]);

  describe.each(['float32', 'bfloat16'] as const)('in %s', (dtype) => {
    const posed = problems.map((problem) => pose(problem, dtype));
    let references: ReturnType<typeof runTorch>;
    beforeAll(() => {
      references = runTorch(posed);
    });

    it.each(devices)('is at most twice as far from float64 on %s', (_, where) => {
      posed.forEach((problem, i) => {
        const { exact, own } = references[i]!;
        const ours = runOurs(problem, where);
        for (const name of names) {
          const bound = 2 * relativeError(own[name], exact[name]) + 2 * unitRoundoff[dtype]!;
          expect(relativeError(ours[name], exact[name]), `problem ${i}, ${name}`).toBeLessThanOrEqual(bound);
        }
      });
    });
  });
});
