import { expect, it } from 'vitest';
import { countSteps } from '../../src/measuring/step-runner.ts';

it('counts what counts from one, after the warm-up', () => {
  const told: string[] = [];
  const stepDone = countSteps((done, total, message) => void told.push(`${message} ${done}/${total}`), {
    ...{ warmup: 1, steps: 3 },
  });
  for (let step = 0; step < 4; step++) stepDone();
  expect(told).toEqual(['warm-up 1/1', 'steps 1/3', 'steps 2/3', 'steps 3/3']);
});
