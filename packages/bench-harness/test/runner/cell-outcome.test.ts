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
const classify = (changes: Partial<CellEnding>) => classifyEnding({ ...ending, ...changes });
const crash = (status: 'failed' | 'out-of-memory', message: string) => ({
  status,
  error: { name: status === 'failed' ? 'CellCrash' : 'OutOfMemoryError', message },
});

describe('classifyEnding', () => {
  it('takes a result whatever came after it', () => {
    const result = { answer: 42 };
    for (const after of [
      { exitSignal: 'SIGSEGV' as const },
      { killedBy: 'timeout' as const },
      { killedBy: 'interrupt' as const },
      { error: { name: 'Error', message: 'late' } },
      { exitSignal: 'SIGKILL' as const, kernelRanOutOfMemory: true },
    ]) {
      expect(classify({ result, ...after })).toEqual({ status: 'ok', result });
    }
  });

  it('does not record an interruption', () => {
    const error = { name: 'Error', message: 'on the way out' };
    expect(classify({ killedBy: 'interrupt', exitSignal: 'SIGKILL', error })).toEqual({
      status: 'interrupted',
    });
  });

  it('gives the seconds of a timeout, whatever the cell said meanwhile', () => {
    const timeout = (timeoutMs: number | null) =>
      classify({
        killedBy: 'timeout',
        timeoutMs,
        error: { name: 'Error', message: 'x' },
        exitSignal: 'SIGKILL',
      });
    expect(timeout(2500)).toEqual({
      status: 'timeout',
      error: { name: 'TimeoutError', message: 'The cell took longer than 2.5 s and was killed (--timeout).' },
    });
    expect(timeout(null)).toMatchObject({ error: { message: expect.stringContaining('than 0 s') } });
  });

  it.each([
    [{ name: 'TypeError', message: 'broken' }, 'failed'],
    [{ name: 'OutOfMemoryError', code: 'OUT_OF_MEMORY', message: 'asked for 1 GiB' }, 'out-of-memory'],
    [{ name: 'RangeError', message: 'Array buffer allocation failed' }, 'out-of-memory'],
    [{ name: 'Error', code: 'OTHER', message: 'OUT_OF_MEMORY' }, 'failed'],
  ] as const)('passes the error %j on as %s', (error, status) => {
    expect(classify({ error, exitCode: 1 })).toEqual({ status, error });
    // What the process printed in addition does not change what it said.
    expect(classify({ error, exitCode: 1, stderrTail: 'std::bad_alloc' })).toEqual({ status, error });
  });

  it('believes the kernel that it killed for want of memory, and only the kernel', () => {
    const signal = "The cell's process was ended by the signal";
    expect(classify({ exitSignal: 'SIGKILL', kernelRanOutOfMemory: true })).toEqual(
      crash(
        'out-of-memory',
        "The kernel killed the cell's process because the machine's memory was used up.",
      ),
    );
    expect(classify({ exitSignal: 'SIGKILL' })).toEqual(
      crash('failed', `${signal} SIGKILL before it had a result.`),
    );
    // Some other process was killed meanwhile.
    expect(classify({ exitSignal: 'SIGSEGV', kernelRanOutOfMemory: true })).toEqual(
      crash('failed', `${signal} SIGSEGV before it had a result.`),
    );
    expect(
      classify({ exitSignal: 'SIGKILL', kernelRanOutOfMemory: true, killedBy: 'timeout' }),
    ).toMatchObject({
      status: 'timeout',
    });
  });

  it('says how a process ended that said nothing of its error, and what it printed', () => {
    expect(classify({ exitCode: 7 })).toEqual(
      crash('failed', "The cell's process exited with code 7 before it had a result."),
    );
    expect(classify({ exitCode: 7, stderrTail: '\n a fault \n' })).toEqual(
      crash('failed', "The cell's process exited with code 7 before it had a result. It said:\na fault"),
    );
  });

  it.each([
    "terminate called after throwing an instance of 'std::bad_alloc'",
    'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory',
  ])('knows a failed allocation by what was said: %s', (said) => {
    expect(classify({ exitSignal: 'SIGABRT', stderrTail: said })).toEqual(
      crash(
        'out-of-memory',
        `The cell's process was ended by the signal SIGABRT before it had a result. It said:\n${said}`,
      ),
    );
  });
});
