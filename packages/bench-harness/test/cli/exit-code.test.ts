import { expect, it } from 'vitest';
import { exitCodeOf } from '../../src/cli/flags/sweep-flags.ts';
import { outOfMemoryRecord, toyRecord } from '../fixtures/records.ts';

const failed = toyRecord({}, { status: 'failed' });

it.each([
  ['all measured', [toyRecord()], 'report', 0],
  ['out of memory', [toyRecord(), outOfMemoryRecord()], 'report', 3],
  ['out of memory, allowed', [outOfMemoryRecord()], 'ok', 0],
  ['out of memory, a failure', [outOfMemoryRecord()], 'fail', 1],
  ['a failure along with out of memory', [outOfMemoryRecord(), failed], 'ok', 1],
  ['a timeout', [toyRecord({}, { status: 'timeout' })], 'ok', 1],
] as const)('exit code: %s', (_, records, policy, code) => {
  expect(exitCodeOf(records, policy)).toBe(code);
});
