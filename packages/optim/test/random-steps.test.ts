import { device } from '@roofline/tensor-core';
import { describe } from 'vitest';
import { fuzzSettings } from '../../tensor-core/test/compile/fuzz-settings.ts';
import { itCompilesRandomSteps } from '../../tensor-core/test/compile/random-steps.ts';
import { trainers } from './random-steps-cases.ts';

describe('random steps with optimizers', () => {
  itCompilesRandomSteps(() => device('cpu') as never, fuzzSettings(1, 60), trainers);
});
