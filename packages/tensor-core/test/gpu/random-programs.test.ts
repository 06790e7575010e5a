import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { fuzzSettings } from '../program/fuzz-settings.ts';
import { itCompilesRandomPrograms } from '../program/random-programs.ts';
import { itCompilesRandomSteps } from '../program/random-steps.ts';

describe('random programs on CUDA', () => {
  itCompilesRandomPrograms(() => device('cuda'), fuzzSettings(11, 300));
  itCompilesRandomSteps(() => device('cuda'), fuzzSettings(20_000, 300));
});
