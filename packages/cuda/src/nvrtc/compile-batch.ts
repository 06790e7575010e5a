import {
  MessageChannel,
  type MessagePort,
  Worker,
  type WorkerOptions,
  receiveMessageOnPort,
} from 'node:worker_threads';
import { DeviceError } from '../base/errors.ts';
import { packageProgram } from '../base/host/package-root.ts';
import type { KeepImage, KernelBatch } from './kernel-batch.ts';
import type { CompileRequest } from './nvrtc.ts';

/**
 * How far a kernel of a batch has come. Who turns `waiting` into `begun`, by an atomic exchange, is a thread that compiles it;
 * no thread begins what is `left` to who takes it.
 */
export const kernelStates = { waiting: 0, begun: 1, ended: 2, left: 3 } as const;

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

/** Kernels that threads of their own compile, from now on and until all are done. */
export class CompileBatch implements KernelBatch {
  readonly #states: Int32Array<SharedArrayBuffer>;
  readonly #ports: MessagePort[] = [];
  readonly #workers: Worker[] = [];
  readonly #ended = new Set<Worker>();
  readonly #images = new Map<number, Uint8Array>();
  readonly #keep: KeepImage;
  /** Of a thread that could not be started, or of what was given an image. */
  readonly #errors: unknown[] = [];
  #endsAtFailure = false;

  constructor(requests: readonly CompileRequest[], threads: number, keep: KeepImage = () => false) {
    this.#states = new Int32Array(new SharedArrayBuffer(4 * requests.length));
    this.#keep = keep;
    const count = Math.min(threads, requests.length);
    while (this.#workers.length < count && this.#start(requests)) endWithProcess(this);
  }

  /** Gives whether it could; where one thread cannot be started, as under Node's `--permission`, none can. */
  #start(requests: readonly CompileRequest[]): boolean {
    const { port1, port2 } = new MessageChannel();
    const workerData: CompileThreadData = { requests, states: this.#states, port: port2 };
    const options: WorkerOptions = { ...threadOptions(), workerData, transferList: [port2] };
    let worker: Worker;
    try {
      worker = new Worker(packageProgram('nvrtc/compile-worker'), options);
    } catch (error) {
      port1.close();
      this.#errors.push(new DeviceError(threadError('could not be started', error), { cause: error }));
      return false;
    }
    port1.on('message', (outcome: CompileOutcome) => this.#note(outcome));
    // A process may end before what it did not wait for.
    port1.unref();
    worker.unref();
    // What a thread that does not come up leaves waiting, who needs it compiles.
    worker.on('error', () => {});
    worker.on('exit', () => this.#ended.add(worker).size === this.#workers.length && underWay.delete(this));
    this.#ports.push(port1);
    this.#workers.push(worker);
    return true;
  }

  /** Compiles nothing itself: null also says that no thread has begun it, and that none will. */
  take(index: number): Uint8Array | null {
    this.#leave(index);
    // Returns at once unless a thread has begun it.
    Atomics.wait(this.#states, index, kernelStates.begun);
    this.#receive();
    const image = this.#images.get(index) ?? null;
    this.#images.delete(index);
    return image;
  }

  /**
   * Resolves when all kernels are compiled; or when those are that had been begun before one did not compile. Rejects with what
   * `keep` throws, or with a DeviceError if a thread does not start or ends before its work.
   */
  async ended(): Promise<void> {
    this.#endsAtFailure = true;
    try {
      await Promise.all(this.#workers.map(endOf));
    } finally {
      this.leaveWaiting();
      this.#receive();
    }
    if (this.#errors.length > 0) throw this.#errors[0];
  }

  /** No thread begins another kernel. */
  leaveWaiting(): void {
    for (const index of this.#states.keys()) this.#leave(index);
  }

  #leave(index: number): void {
    Atomics.compareExchange(this.#states, index, kernelStates.waiting, kernelStates.left);
  }

  #note({ index, image }: CompileOutcome): void {
    try {
      if (image && !this.#keep(index, image)) this.#images.set(index, image);
    } catch (error) {
      this.#errors.push(error);
    }
    if (this.#endsAtFailure && (!image || this.#errors.length > 0)) this.leaveWaiting();
  }

  #receive(): void {
    for (const port of this.#ports) {
      for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
        this.#note(next.message as CompileOutcome);
    }
  }
}

/** Batches with threads that have not ended. */
const underWay = new Set<CompileBatch>();

let endsWithProcess = false;

/** A process that ends waits for its threads, one by one, and each for what it compiles: lets that be the last. */
function endWithProcess(batch: CompileBatch): void {
  underWay.add(batch);
  if (!endsWithProcess) process.on('exit', () => underWay.forEach((each) => each.leaveWaiting()));
  endsWithProcess = true;
}

/** Without what a process loads first, by its flags or NODE_OPTIONS: it could print, or keep a thread from ending. */
function threadOptions(): WorkerOptions {
  // Node that runs TypeScript says so once in each thread.
  const execArgv = ['--disable-warning=ExperimentalWarning'];
  return { execArgv, env: { ...process.env, NODE_OPTIONS: '' } };
}

function endOf(worker: Worker): Promise<void> {
  worker.ref();
  return new Promise((resolve, reject) => {
    const fail = (reason: unknown) =>
      reject(new DeviceError(threadError('ended', reason), { cause: reason }));
    worker.on('error', fail);
    worker.on('exit', (code) => (code === 0 ? resolve() : fail(`exit code ${code}`)));
  });
}

function threadError(what: string, reason: unknown): string {
  return `compileKernels: a thread that compiles ${what}: ${reason instanceof Error ? reason.message : String(reason)}`;
}
