import { existsSync, copyFileSync, readFileSync, readdirSync, truncateSync, writeFileSync } from 'node:fs';
import { AdamW, GradientScaler, type ScheduleDescription, cosineSchedule, scheduleOf } from '@roofline/optim';
import { Generator, type Tensor, crossEntropy, dropout, flatten, ones } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  TokenLoader,
  TransformerLM,
  byteTokens,
  describeTraining,
  fit,
  loadTraining,
  saveCheckpoint,
  saveTensors,
  saveTraining,
} from '../../src/index.ts';
import { temporaryFolder } from '../checkpoint/temporary-folder.ts';

const path = temporaryFolder();
const text = byteTokens('What has been saved goes on as if it had not been. '.repeat(3));
const config = {
  ...{ vocabularySize: 128, contextLength: 8, modelDimension: 16 },
  ...{ feedForwardDimension: 24, layers: 1, heads: 2, tieWordEmbeddings: true },
};
const schedule = cosineSchedule({ maximum: 0.01, warmupSteps: 2, totalSteps: 8 });

function parts(seed = 1) {
  const model = new TransformerLM(config, { seed });
  return {
    model,
    optimizer: new AdamW(model.parameters()),
    scaler: new GradientScaler({ growthInterval: 3 }),
    data: new TokenLoader(text, { batch: 4, contextLength: 8 }),
    generator: new Generator(seed),
  };
}

type Parts = ReturnType<typeof parts>;

function run({ model, generator, ...rest }: Parts, from: number, steps: number, of = schedule): void {
  const loss = (ids: Tensor, targets: Tensor) => {
    const logits = dropout(model.forward(ids), { p: 0.3, generator });
    return crossEntropy(flatten(logits, 0, 1), flatten(targets));
  };
  const options = { ...rest, loss, schedule: of, from, steps, dtype: 'float16' } as const;
  for (const _ of fit(model, options));
}

const stateOf = ({ model, optimizer, scaler, data, generator }: Parts) => ({
  weights: [...model.parameters()].map((each) => each.toFlatArray()),
  moments: Object.values(optimizer.stateDict().tensors).map((each) => each.toFlatArray()),
  others: [optimizer.stateDict().metadata.steps, scaler.stateDict(), data.state(), generator.stateDict()],
});

describe('saveTraining and loadTraining', () => {
  it('go on to the last bit: weights, moments, schedule, scale, random numbers and place', () => {
    const whole = parts();
    run(whole, 0, 8);
    const stopped = parts();
    run(stopped, 0, 5);
    const metadata = { size: 'toy' };
    saveTraining(path('a'), stopped, { step: 5, schedule: schedule.description, metadata });
    const before = stateOf(stopped);

    const resumed = parts(7);
    run(resumed, 0, 2);
    const saved = loadTraining(path('a'), resumed);
    expect(saved).toEqual({ step: 5, schedule: schedule.description, metadata });
    expect(describeTraining(path('a'))).toEqual(saved);
    expect(stateOf(resumed)).toEqual(before);
    run(resumed, saved.step, 8, scheduleOf(saved.schedule as ScheduleDescription));
    expect(stateOf(resumed)).toEqual(stateOf(whole));
  });

  it('load the model alone, as for generating', () => {
    const trained = parts();
    run(trained, 0, 3);
    saveTraining(path('b'), trained, { step: 3 });
    const { model } = parts(9);
    expect(loadTraining(path('b'), { model, generator: new Generator(0) })).toEqual({
      step: 3,
      schedule: null,
      metadata: {},
    });
    expect([...model.parameters()].map((each) => each.toFlatArray())).toEqual(stateOf(trained).weights);
  });

  it('name what a file lacks', () => {
    const { model, optimizer } = parts();
    saveTraining(path('c'), { model }, { step: 0 });
    expect(() => loadTraining(path('c'), { model, optimizer })).toThrow(
      /was saved without the state of `optimizer`/,
    );
    saveCheckpoint(model, path('d'));
    expect(() => loadTraining(path('d'), { model })).toThrow(
      /d holds no training; name a file that saveTraining wrote/,
    );
    saveTensors({ tensors: {}, metadata: { 'roofline.training': '{"version":2,"step":1}' } }, path('e'));
    expect(() => describeTraining(path('e'))).toThrow(
      /a training of version 2, this release reads version 1/,
    );
    saveTensors({ tensors: {}, metadata: { 'roofline.training': '{"vers' } }, path('e'));
    expect(() => describeTraining(path('e'))).toThrow(/its text of the training is damaged/);
  });

  it.each(['format', 'parts', 'roofline.training'])(
    'refuse text under the name %s, which would be lost or stand for something else',
    (name) => {
      const place = { step: 0, metadata: { [name]: 'mine' } };
      expect(() => saveTraining(path('named'), parts(), place)).toThrow(
        `saveTraining: the metadata have "${name}", a name that the file itself needs; take another.`,
      );
      expect(existsSync(path('named'))).toBe(false);
    },
  );

  it.each(['weights', 'moments', 'data'])('leave everything as it was where the %s are others', (what) => {
    const saved = parts();
    run(saved, 0, 2);
    saveTraining(path('f'), saved, { step: 2 });
    const other = parts(3);
    run(other, 0, 1);
    const loaded = {
      weights: () => {
        const model = new TransformerLM({ ...config, modelDimension: 8 });
        return { ...other, model };
      },
      moments: () => ({ ...other, optimizer: new AdamW([ones([2], { requiresGrad: true })]) }),
      data: () => ({ ...other, data: new TokenLoader(text, { batch: 4, contextLength: 8, seed: 1 }) }),
    }[what]!();
    const before = stateOf(other);
    expect(() => loadTraining(path('f'), loaded)).toThrow(/does not fit the model|AdamW|of seed 0/);
    expect(stateOf(other)).toEqual(before);
  });

  it('tell a file that is cut off, wherever', () => {
    const { model } = parts();
    saveTraining(path('whole'), { model }, { step: 1 });
    const { length } = readFileSync(path('whole'));
    for (const bytes of [0, 5, 100, length / 2, length - 1]) {
      copyFileSync(path('whole'), path('torn'));
      truncateSync(path('torn'), bytes);
      expect(() => loadTraining(path('torn'), { model })).toThrow(
        expect.objectContaining({ code: 'SAFETENSORS', message: expect.stringContaining('torn') }),
      );
    }
  });

  it('leave the file before where the new one cannot be written', () => {
    const { model, optimizer, generator } = parts();
    saveTraining(path('g'), { model, generator }, { step: 1 });
    const disposed = ones([2]);
    disposed.dispose();
    const failing = {
      stateDict: () => ({ tensors: { x: disposed }, metadata: {} }),
      loadStateDict: () => {},
    };
    expect(() => saveTraining(path('g'), { model, optimizer: failing, generator }, { step: 2 })).toThrow(
      /disposed/,
    );
    expect(describeTraining(path('g')).step).toBe(1);
    expect(readdirSync(path('.')).filter((name) => name.endsWith('.partial'))).toEqual([]);
    writeFileSync(path('h'), 'not a checkpoint');
    expect(() => loadTraining(path('h'), { model, optimizer })).toThrow(/h is no safetensors file/);
  });
});
