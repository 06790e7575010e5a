import { AdamW } from '@roofline/optim';
import {
  type CompiledFunction,
  Generator,
  type Tensor,
  autocast,
  compile,
  cudaAvailable,
  device as deviceOf,
  profile,
  randint,
} from '@roofline/tensor-core';
import { cudaDevice } from '@roofline/tensor-core/native';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TransformerLM, languageModelLoss, presets } from '../../src/index.ts';

const branchCounts = [1, 2, 3] as const;
const steps = 20;

/** A step of the small model in bfloat16 with a graph of so many branches, and what it trains. */
function smallStep(branches: number) {
  const config = { ...presets.small, contextLength: 256 };
  const model = new TransformerLM(config, { device: 'cuda', seed: 1 });
  const optimizer = new AdamW(model.parameters());
  const generator = new Generator(2);
  const tokens = () =>
    randint(0, config.vocabularySize, [4, 256], { generator, device: 'cuda', dtype: 'int64' });
  const [ids, targets] = [tokens(), tokens()];
  const step: CompiledFunction<() => Tensor> = compile(
    () => {
      const loss = autocast('bfloat16', () => languageModelLoss(model, ids, targets));
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss.detach();
    },
    { branches },
  );
  return { branches, model, step };
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

describe.skipIf(!cudaAvailable())('branches of a graph on a GPU', () => {
  let trained: ReturnType<typeof smallStep>[] = [];

  beforeAll(() => {
    trained = branchCounts.map(smallStep);
  });

  afterAll(() => {
    for (const { step, model } of trained) {
      step.dispose();
      model.dispose();
    }
  });

  it('train as one chain does, bit by bit', () => {
    const [chain, ...branched] = trained.map(({ step }) =>
      Array.from({ length: steps }, () => step().item()),
    );
    for (const losses of branched) expect(losses).toEqual(chain);
    const [expected, ...others] = trained.map(({ model }) => [...model.parameters()]);
    for (const parameters of others)
      parameters.forEach((parameter, i) =>
        expect(Buffer.compare(bytesOf(parameter), bytesOf(expected![i]!))).toBe(0),
      );
  });

  it('take no more memory than a chain, and as long as is printed, in turn with it', () => {
    const device = cudaDevice(deviceOf('cuda'));
    const times = trained.map(() => ({ deviceMs: [] as number[], hostUs: [] as number[] }));
    for (let round = 0; round < 60; round++) {
      trained.forEach(({ step }, i) => {
        device.synchronize();
        const start = device.recordEvent();
        const hostStart = performance.now();
        const loss = step();
        times[i]!.hostUs.push((performance.now() - hostStart) * 1000);
        times[i]!.deviceMs.push(device.recordEvent().elapsedMs(start));
        loss.dispose();
      });
    }
    const table = times.map(({ deviceMs, hostUs }, i) => {
      const { nodes, callsBeside, arenaBytes } = trained[i]!.step.explain().at(-1)!;
      return {
        ...{ branches: trained[i]!.branches, nodes, callsBeside, arenaMiB: arenaBytes / 2 ** 20 },
        ...{ deviceMs: median(deviceMs.slice(20)), hostUs: median(hostUs.slice(20)) },
      };
    });
    console.table(table);
    expect(table[1]!.arenaMiB).toBeLessThan(1.02 * table[0]!.arenaMiB);
  });

  it('are profiled with the op of every kernel, beside each other', async () => {
    for (const { step, branches } of trained) {
      const { kernels, wallUs } = await profile(() => {
        step().dispose();
      });
      const ran = kernels.filter(({ op }) => op !== null);
      let [busyUs, end] = [0, -Infinity];
      for (const { startUs, durationUs } of kernels) {
        busyUs += Math.max(0, startUs + durationUs - Math.max(startUs, end));
        end = Math.max(end, startUs + durationUs);
      }
      const lastsUs = end - kernels[0]!.startUs;
      const sumUs = kernels.reduce((sum, { durationUs }) => sum + durationUs, 0);
      const tracks = new Set(kernels.map(({ stream }) => stream));
      console.table([
        {
          ...{ branches, kernels: kernels.length, withOp: ran.length, tracks: tracks.size },
          ...{ sumUs, busyUs, lastsUs, wallUs, idleWithin: 1 - busyUs / lastsUs },
        },
      ]);
      // What has no op copies the result.
      expect(kernels.length - ran.length).toBeLessThanOrEqual(2);
      expect(tracks.size).toBe(step.explain().at(-1)!.branches);
    }
  });
});

function bytesOf(x: Tensor): Buffer {
  const { buffer, byteOffset, byteLength } = x.toTypedArray();
  return Buffer.from(buffer, byteOffset, byteLength);
}
