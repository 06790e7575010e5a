import {
  MessageChannel,
  type MessagePort,
  Worker,
  type WorkerOptions,
  receiveMessageOnPort,
} from 'node:worker_threads';
import { DeviceError } from '../../../errors.ts';
import { packageProgram } from '../../../host/package-root.ts';
import type { CompileRequest } from './nvrtc.ts';

/** How far a kernel of a batch has come. Who turns `waiting` into `begun`, by an atomic exchange, compiles it. */
export const kernelStates = { waiting: 0, begun: 1, ended: 2 } as const;

/** What a thread begins with. */
export interface CompileThreadData {
  readonly requests: readonly CompileRequest[];
  /** Of each of them, shared by all threads. */
  readonly states: Int32Array<SharedArrayBuffer>;
  /** Where outcomes go, each before its state is `ended`. */
  readonly port: MessagePort;
}

/** What became of a kernel: its image, or null where it did not compile. */
export interface CompileOutcome {
  readonly index: number;
  readonly image: Uint8Array | null;
}

/** Kernels that are compiled aside, by their places in a list. */
export interface KernelBatch {
  /** Waits for an image. Null where there will be none: who compiles the kernel itself sees what is wrong with it. */
  take(index: number): Uint8Array | null;
}

/** Kernels that threads of their own compile, from now on and until all are done. */
export class CompileBatch implements KernelBatch {
  readonly #states: Int32Array<SharedArrayBuffer>;
  readonly #ports: MessagePort[] = [];
  readonly #workers: readonly Worker[];
  readonly #images = new Map<number, Uint8Array | null>();
  #onOutcome: (outcome: CompileOutcome) => void = () => {};

  constructor(requests: readonly CompileRequest[], threads: number) {
    this.#states = new Int32Array(new SharedArrayBuffer(4 * requests.length));
    this.#workers = Array.from({ length: Math.min(threads, requests.length) }, () => this.#begin(requests));
  }

  #begin(requests: readonly CompileRequest[]): Worker {
    const { port1, port2 } = new MessageChannel();
    this.#ports.push(port1);
    const workerData: CompileThreadData = { requests, states: this.#states, port: port2 };
    const options: WorkerOptions = { workerData, transferList: [port2], execArgv: workerFlags };
    const worker = new Worker(packageProgram('devices/cuda/compile/compile-worker'), options);
    // A process may end before what it did not wait for.
    worker.unref();
    // What a thread that does not come up leaves waiting, who needs it compiles.
    worker.on('error', () => {});
    return worker;
  }

  /** Compiles nothing itself: null also says that no thread has begun it, and that none will. */
  take(index: number): Uint8Array | null {
    const { waiting, begun } = kernelStates;
    if (Atomics.compareExchange(this.#states, index, waiting, begun) === waiting) return null;
    Atomics.wait(this.#states, index, begun);
    this.#receive();
    return this.#images.get(index) ?? null;
  }

  /**
   * Resolves when all kernels are compiled; or when those are that had been begun before one did not compile. Tells of each
   * kernel. Rejects with a DeviceError if a thread ends before its work.
   */
  async ended(onOutcome: (outcome: CompileOutcome) => void): Promise<void> {
    this.#onOutcome = (outcome) => {
      if (!outcome.image) this.#beginNoMore();
      onOutcome(outcome);
    };
    for (const port of this.#ports) port.on('message', (outcome: CompileOutcome) => this.#note(outcome));
    try {
      await Promise.all(this.#workers.map(endOf));
    } finally {
      this.#beginNoMore();
      this.#receive();
      for (const port of this.#ports) port.close();
    }
  }

  #note(outcome: CompileOutcome): void {
    this.#images.set(outcome.index, outcome.image);
    this.#onOutcome(outcome);
  }

  #beginNoMore(): void {
    const { waiting, begun } = kernelStates;
    for (const index of this.#states.keys()) Atomics.compareExchange(this.#states, index, waiting, begun);
  }

  #receive(): void {
    for (const port of this.#ports) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
        this.#note(next.message as CompileOutcome);
    }
  }
}

// Node that runs TypeScript says so once in each thread.
const workerFlags = ['--disable-warning=ExperimentalWarning'];

function endOf(worker: Worker): Promise<void> {
  worker.ref();
  return new Promise((resolve, reject) => {
    const fail = (what: string, cause?: unknown) =>
      reject(new DeviceError(`compileKernels: a thread that compiled ended: ${what}`, { cause }));
    worker.on('error', (error) => fail(error.message, error));
    worker.on('exit', (code) => (code === 0 ? resolve() : fail(`exit code ${code}`)));
  });
}
