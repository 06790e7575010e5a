import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { fuzzSettings } from '../compile/fuzz-settings.ts';
import { itCompilesRandomPrograms } from '../compile/random-programs.ts';
import { itCompilesRandomSteps } from '../compile/random-steps.ts';

describe('random programs on CUDA', () => {
  itCompilesRandomPrograms(() => device('cuda'), fuzzSettings(11, 300));
  itCompilesRandomSteps(() => device('cuda'), fuzzSettings(20_000, 300));
});
