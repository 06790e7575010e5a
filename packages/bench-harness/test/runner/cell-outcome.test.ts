import { describe, expect, it } from 'vitest';
import { classifyEnding, type CellEnding } from '../../src/runner/cell-outcome.ts';

const ending: CellEnding = {
  result: null,
  error: null,
  exitCode: null,
  exitSignal: null,
  killedBy: null,
  timeoutMs: 5000,
  stderrTail: '',
  kernelRanOutOfMemory: false,
};

describe('classifyEnding', () => {
  it('takes a result whatever came after it', () => {
    const outcome = classifyEnding({ ...ending, result: { answer: 42 }, exitSignal: 'SIGSEGV' });
    expect(outcome).toEqual({ status: 'ok', result: { answer: 42 } });
  });

  it('believes the kernel that it killed for want of memory, and only the kernel', () => {
    const killed: CellEnding = { ...ending, exitSignal: 'SIGKILL' };
    expect(classifyEnding(killed).status).toBe('failed');
    expect(classifyEnding({ ...killed, kernelRanOutOfMemory: true }).status).toBe('out-of-memory');
    expect(classifyEnding({ ...killed, kernelRanOutOfMemory: true, killedBy: 'timeout' }).status).toBe(
      'timeout',
    );
  });

  it('knows a failed allocation by what was said', () => {
    const said = "terminate called after throwing an instance of 'std::bad_alloc'";
    const outcome = classifyEnding({ ...ending, exitSignal: 'SIGABRT', stderrTail: said });
    expect(outcome).toMatchObject({
      status: 'out-of-memory',
      error: { message: expect.stringContaining(said) },
    });
    const error = { name: 'RangeError', message: 'Array buffer allocation failed' };
    expect(classifyEnding({ ...ending, error, exitCode: 1 }).status).toBe('out-of-memory');
  });

  it('does not record an interruption', () => {
    expect(classifyEnding({ ...ending, killedBy: 'interrupt', exitSignal: 'SIGKILL' })).toEqual({
      status: 'interrupted',
    });
  });
});
