import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { DeviceError } from '../base/errors.ts';
import { packageProgram } from '../base/host/package-root.ts';

/** What the thread says once, in the first word of the memory that it shares: that it is ready, or CUPTI's refusal. */
export interface BufferThreadStart {
  readonly state: SharedArrayBuffer;
}

/** The values of that word; a CUptiResult that is no success is added to `refused`. */
export const threadStates = { starting: 0, ready: 1, refused: 2 } as const;

const startTimeoutMs = 30_000;

/**
 * The buffers that CUPTI writes its records to. It asks for one on every thread that calls CUDA, and hands full ones over
 * on a thread of its own; each of these then waits for a function of JavaScript. They are therefore served by a thread
 * that does nothing else: the one that is profiled may be blocked, by NCCL say, which waits for a thread that waits for
 * a buffer.
 */
export class CuptiBuffers {
  readonly #thread: Worker;

  /** Starts the thread and waits until CUPTI knows of it. `describe` tells what a CUptiResult means. */
  constructor(describe: (result: number) => string) {
    const state = new SharedArrayBuffer(4);
    this.#thread = new Worker(packageProgram('cupti/cupti-thread'), {
      name: 'roofline-cupti',
      workerData: { state } satisfies BufferThreadStart,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#thread.unref();
    const word = new Int32Array(state);
    Atomics.wait(word, 0, threadStates.starting, startTimeoutMs);
    const said = Atomics.load(word, 0);
    if (said === threadStates.ready) return;
    void this.#thread.terminate();
    const why =
      said === threadStates.starting
        ? `it did not start within ${startTimeoutMs / 1000} s`
        : describe(said - threadStates.refused);
    throw new DeviceError(`profile: the thread that holds CUPTI's buffers cannot begin: ${why}.`);
  }

  /** The records of the buffers that have been handed over since the last time, each buffer's in bytes of their own. */
  async collect(): Promise<readonly Uint8Array<ArrayBuffer>[]> {
    // It must not end with the process's other work while it answers.
    this.#thread.ref();
    try {
      this.#thread.postMessage('collect', []);
      const [filled] = (await once(this.#thread, 'message')) as [readonly Uint8Array<ArrayBuffer>[]];
      return filled;
    } finally {
      this.#thread.unref();
    }
  }
}
