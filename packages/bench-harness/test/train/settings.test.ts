import { describe, expect, it } from 'vitest';
import {
  type GivenSettings,
  beginWith,
  goOnWith,
  makeSchedule,
  scheduleInWords,
} from '../../src/train/settings.ts';

const shape = { vocabularySize: 256, modelDimension: 8, feedForwardDimension: 8, layers: 1, heads: 2 };
const model = { size: 'toy', shape };
const begin = (given: GivenSettings = {}, device: 'cpu' | 'cuda' = 'cpu') =>
  beginWith({ data: 'a.txt', model, ...given }, device);

describe('settings of a training', () => {
  it('have defaults that fit the device and the number of steps', () => {
    expect(begin()).toMatchObject({ dtype: 'float32', attention: 'plain', warmup: 100, scheduleSteps: 2000 });
    expect(begin({}, 'cuda')).toMatchObject({ dtype: 'bfloat16', attention: 'flash' });
    expect(begin({ steps: 50, learningRate: 1e-3 })).toMatchObject({
      ...{ warmup: 5, scheduleSteps: 50, minimumLearningRate: 1e-4 },
    });
  });

  it.each<[given: GivenSettings, message: string]>([
    [{ batch: 6, accumulate: 4 }, '--accumulate 4 must divide it into equal parts'],
    [
      { batch: 12, ranks: 4, accumulate: 2 },
      '--batch 12 is of a whole step on all of 4 ranks, and --nproc 4 times --accumulate 2 must divide it',
    ],
    [{ mode: 'hybrid', ranks: 2 }, '--nproc is 2: take an even number from 4 on, or --mode fsdp'],
    [{ mode: 'hybrid', ranks: 5, batch: 30 }, '--nproc is 5: take an even number from 4 on, or --mode fsdp'],
    [{ steps: 5, warmup: 6 }, '--warmup 6 must lie between 0 and --schedule-steps 5'],
    [{ learningRate: 1, minimumLearningRate: 2 }, '--min-lr 2 must lie between 0 and --lr 1'],
    [
      { schedule: 'wsd', steps: 10, warmup: 9 },
      '--warmup 9 and a decay of 2 are more than --schedule-steps 10',
    ],
  ])('%j do not fit together', (given, message) => {
    expect(() => begin(given)).toThrow(message);
  });

  it('go on in one process, or on other ranks, as far as the mode allows', () => {
    const saved = begin({ mode: 'hybrid', ranks: 4 });
    expect(goOnWith(saved, { ranks: 8 }, 10).settings).toMatchObject({ mode: 'hybrid', ranks: 8 });
    expect(goOnWith(saved, { ranks: 1 }, 10).changes).toEqual(['--nproc 1 in place of 4']);
    expect(goOnWith(saved, { ranks: 2, mode: 'fsdp' }, 10).settings).toMatchObject({ ranks: 2 });
    expect(() => goOnWith(saved, { ranks: 2 }, 10)).toThrow('--nproc is 2');
  });

  it('of one that goes on are the saved ones, with what is given in words', () => {
    const saved = begin({ steps: 100 });
    const { settings, changes } = goOnWith(
      saved,
      { data: '/moved/a.txt', steps: 300, learningRate: 1e-4 },
      100,
    );
    expect(settings).toEqual({ ...saved, data: '/moved/a.txt', steps: 300, learningRate: 1e-4 });
    expect(changes).toEqual(['--steps 300 in place of 100', '--lr 0.0001 in place of 0.0003']);
  });

  it.each<[given: GivenSettings, message: string]>([
    [{ seed: 1 }, '--seed is 0 in the training that --resume names, and 1 would make another one'],
    [{ context: 8 }, '--context is 256'],
    [{ validation: 0 }, '--validation is 0.1'],
    [{ model: { size: 'other', shape } }, '--size is toy'],
    [{ steps: 10 }, 'has made 10 steps; --steps 10 adds none'],
  ])('refuse %j, which would make another training', (given, message) => {
    expect(() => goOnWith(begin({ steps: 20 }), given, 10)).toThrow(message);
  });

  it('keep the schedule as long as it was, and say so', () => {
    const saved = begin({ steps: 100, learningRate: 1e-3 });
    expect(scheduleInWords(saved)).toBe(null);
    const longer = goOnWith(saved, { steps: 200 }, 100).settings;
    for (let step = 0; step < 100; step++) expect(makeSchedule(longer)(step)).toBe(makeSchedule(saved)(step));
    expect(makeSchedule(longer)(150)).toBe(1e-4);
    expect(scheduleInWords(longer)).toBe(
      'The cosine schedule stays one of 100 steps: from there on the learning rate is 0.000100. --schedule-steps 200 stretches it to the end.',
    );
    expect(scheduleInWords(goOnWith(saved, { steps: 50 }, 10).settings)).toMatch(
      /training ends before, at a learning rate of 0.000644. --schedule-steps 50 shortens it/,
    );
    expect(scheduleInWords(goOnWith(saved, { steps: 200, scheduleSteps: 200 }, 10).settings)).toBe(null);
    expect(scheduleInWords(begin({ schedule: 'constant', steps: 5, scheduleSteps: 9 }))).toBe(null);
  });
});
