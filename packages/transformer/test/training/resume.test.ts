import { rmSync } from 'node:fs';
import { AdamW } from '@roofline/optim';
import {
  type Device,
  type GeneratorState,
  type Tensor,
  compile,
  crossEntropy,
  defaultGenerator,
  device,
  dropout,
  flatten,
  scope,
} from '@roofline/tensor-core';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '@roofline/tensor-core/testing';
import { afterAll, describe, expect, it } from 'vitest';
import {
  TokenLoader,
  type TokenLoaderState,
  TransformerLM,
  byteTokens,
  loadCheckpoint,
  loadTensors,
  saveCheckpoint,
  saveTensors,
} from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';

const path = temporaryFolder();
const untouched = defaultGenerator.stateDict();
afterAll(() => defaultGenerator.loadStateDict(untouched));

const text = 'What has been stopped goes on as if it had not. '.repeat(3);
const config = {
  vocabularySize: 128,
  contextLength: 8,
  modelDimension: 16,
  feedForwardDimension: 24,
  layers: 1,
  heads: 2,
};

/** A training whose numbers come from the default generator, as a program begins it that has just been started. */
class Training {
  readonly model: TransformerLM;
  readonly optimizer: AdamW;
  readonly #step: ((ids: Tensor, targets: Tensor) => Tensor) & { readonly cache?: { readonly hits: number } };
  readonly #loader: TokenLoader;

  constructor(at: Device, execution: 'eager' | 'compiled', seed = 0) {
    defaultGenerator.manualSeed(seed);
    this.model = new TransformerLM(config, { device: at, seed: 1 });
    this.optimizer = new AdamW(this.model.parameters(), { learningRate: 0.01 });
    this.#loader = new TokenLoader(byteTokens(text), { batch: 4, contextLength: 8, device: at });
    const step = (ids: Tensor, targets: Tensor) => {
      const logits = dropout(this.model.forward(ids), { p: 0.3 });
      const loss = crossEntropy(flatten(logits, 0, 1), flatten(targets));
      loss.backward();
      this.optimizer.step();
      this.optimizer.zeroGrad();
      return loss.detach();
    };
    this.#step = execution === 'compiled' ? compile(step) : step;
  }

  /** The losses of so many steps. */
  run(steps: number): number[] {
    return Array.from({ length: steps }, () =>
      scope(() => {
        const windows = this.#loader.next();
        const loss = this.#step(windows.ids, windows.targets);
        this.#loader.prefetch();
        return loss.item();
      }),
    );
  }

  save(): void {
    const [data, generator] = [this.#loader.state(), defaultGenerator.stateDict()];
    const metadata = { data: JSON.stringify(data), generator: JSON.stringify(generator) };
    saveCheckpoint(this.model, path('model'), metadata);
    scope(() => saveTensors(this.optimizer.stateDict(), path('optimizer')));
  }

  load(): void {
    const { metadata } = loadCheckpoint(this.model, path('model'));
    scope(() => this.optimizer.loadStateDict(loadTensors(path('optimizer'))));
    this.#loader.load(JSON.parse(metadata.data!) as TokenLoaderState);
    defaultGenerator.loadStateDict(JSON.parse(metadata.generator!) as GeneratorState);
  }

  /** Steps that a program has made. */
  get replays(): number {
    return this.#step.cache?.hits ?? 0;
  }

  get parameters(): (number | bigint)[][] {
    return [...this.model.parameters()].map((parameter) => [...parameter.toTypedArray()]);
  }
}

function describeResuming(at: Device): void {
  it.each([
    ['eager', 'eager'],
    ['compiled', 'compiled'],
    ['compiled', 'eager'],
  ] as const)('%s, and then %s, goes on to the last bit', (before, after) => {
    const whole = new Training(at, before, 42);
    const expected = whole.run(10);
    const stopped = new Training(at, before, 42);
    // Stopped after enough steps for a program to have made some of them.
    expect(stopped.run(5)).toEqual(expected.slice(0, 5));
    expect(stopped.replays > 0).toBe(before === 'compiled');
    stopped.save();
    const continued = new Training(at, after);
    continued.run(3);
    continued.load();
    expect(continued.run(5)).toEqual(expected.slice(5));
    expect(continued.replays > 0).toBe(after === 'compiled');
    expect(continued.parameters).toEqual(whole.parameters);
    // The masks are those of the state: from another one they are others.
    continued.load();
    defaultGenerator.manualSeed(0);
    expect(continued.run(1)).not.toEqual(expected.slice(5, 6));
    for (const name of ['model', 'optimizer']) rmSync(path(name));
  });
}

describe('a training with dropout that was stopped', () => {
  describe('on the CPU', () => describeResuming(device('cpu')));
  describe.skipIf(!hostCompilerVersion())('on the emulated GPU (needs g++)', () =>
    describeResuming(openEmulatedDevice()),
  );
});
