import { describe } from 'vitest';
import { device } from '../../../src/index.ts';
import { describeAnyAll } from '../../op-cases/reduce/any-all.ts';

describe('any-all on the CPU', () => {
  describeAnyAll(() => device('cpu'));
});
