// Is alone in a process: ops run in as many threads as there are cores.
import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { fuzzSettings } from './fuzz-settings.ts';
import { itCompilesRandomPrograms } from './random-programs.ts';
import { itCompilesRandomSteps } from './random-steps.ts';

describe('random programs', () => {
  itCompilesRandomPrograms(() => device('cpu'), fuzzSettings(7, 300));
  itCompilesRandomSteps(() => device('cpu'), fuzzSettings(1, 150));
});
