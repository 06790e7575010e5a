import { describe } from 'vitest';
import { fuzzSettings } from '../../tensor-core/test/compile/fuzz-settings.ts';
import { itLeavesWhatRandomStepsLeave } from '../../tensor-core/test/compile/random-passes.ts';
import { trainers } from './random-steps-cases.ts';

describe('random programs with optimizers in symbols', () =>
  itLeavesWhatRandomStepsLeave(fuzzSettings(1, 150), trainers));
