import { describe } from 'vitest';
import { fuzzSettings } from './fuzz-settings.ts';
import { itLeavesWhatRandomStepsLeave } from './random-passes.ts';

describe('random programs in symbols', () => itLeavesWhatRandomStepsLeave(fuzzSettings(1, 300)));
