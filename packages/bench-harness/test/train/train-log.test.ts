import { appendFileSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { TrainLog, logPath, readTrainLog } from '../../src/train/train-log.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

const stepLine = (step: number) => ({ step, loss: 2, gradientNorm: null, learningRate: 1, durationMs: 5 });

it('a log goes on after a step, without what was made later and what was torn', () => {
  const folder = temporaryFolder();
  {
    using log = new TrainLog(folder, 0);
    for (const step of [0, 1, 2]) log.write(stepLine(step));
    log.write({ step: 3, validationLoss: NaN });
    log.write(stepLine(3));
    log.write({ step: 4, validationLoss: 1.5 });
  }
  appendFileSync(logPath(folder), '{"step":4,"lo');
  {
    using log = new TrainLog(folder, 3);
    log.write(stepLine(3));
  }
  const kept = [...[0, 1, 2].map(stepLine), { step: 3, validationLoss: null }, stepLine(3)];
  expect(readTrainLog(folder)).toEqual(kept);
  expect(readFileSync(logPath(folder), 'utf8').split('\n')).toHaveLength(6);
});
