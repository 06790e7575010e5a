import { Worker } from 'node:worker_threads';
import { cellProgram, encodeThreadProgram } from '../paths.ts';
import { threadsOfRank } from '../runner/threads-of-rank.ts';
import type { ByteLevelPlan } from './byte-level.ts';
import type { TextChunk, Tokenizer } from './tokenizers.ts';

/** What a thread begins with: what to encode by, or the tokenizer's file to read. */
export interface EncodeThreadData {
  readonly plan: ByteLevelPlan | null;
  readonly file: string;
}

/** A thread is worth its start from so many bytes on; one that has to read the tokenizer takes a second or two for that. */
const bytesOfThread = { byPlan: 8e6, byFile: 32e6 } as const;

/** How many threads should encode so many bytes; below 2, the thread of the caller does as well. */
export function countThreads({ file, plan }: Tokenizer, bytes: number): number {
  if (file === null) return 1;
  const least = plan === null ? bytesOfThread.byFile : bytesOfThread.byPlan;
  return Math.max(1, Math.min(threadsOfRank(1), Math.floor(bytes / least)));
}

/** Threads that encode chunks of texts, each by an encoder of its own. */
export class EncodeThreads {
  readonly count: number;
  readonly #threads: readonly EncodeThread[];
  #given = 0;

  constructor({ file, plan }: Tokenizer, count: number) {
    const data: EncodeThreadData = { file: file!, plan };
    this.count = count;
    this.#threads = Array.from({ length: count }, () => new EncodeThread(data));
  }

  /** The tokens of a chunk; each thread is given every `count`-th. Throws what a thread does, and for one that ended. */
  encode(chunk: TextChunk<string>): Promise<Int32Array> {
    return this.#threads[this.#given++ % this.count]!.encode(chunk);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end()));
  }
}

class EncodeThread {
  readonly #worker: Worker;
  /** Of the chunks that it has been given, in their order. */
  readonly #waiting: PromiseWithResolvers<Int32Array>[] = [];
  #failure: Error | null = null;

  constructor(workerData: EncodeThreadData) {
    this.#worker = new Worker(encodeThreadProgram, { workerData, execArgv: [...cellProgram.nodeFlags] });
    this.#worker.on('message', (tokens: Int32Array) => this.#waiting.shift()!.resolve(tokens));
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('A thread that encodes texts has ended.')));
  }

  encode(chunk: TextChunk<string>): Promise<Int32Array> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    const waiting = Promise.withResolvers<Int32Array>();
    // Whoever asked for it may still be at another one when it fails.
    waiting.promise.catch(() => {});
    this.#waiting.push(waiting);
    this.#worker.postMessage(chunk, []);
    return waiting.promise;
  }

  end(): Promise<number> {
    return this.#worker.terminate();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}
