import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import type { JsonObject } from '../records/json.ts';
import { pythonDirectory } from '../paths.ts';

/** Versions of PyTorch and Python, and the device as PyTorch names it. */
export const readyReply = z.object({ torch: z.string(), python: z.string(), device: z.string() });
const runReply = z.object({
  deviceMs: z.array(z.number()),
  wallMs: z.array(z.number()),
  phasesMs: z.record(z.string(), z.array(z.number())),
});
/** One step under PyTorch's profiler; see python/torch_profile.py. */
export const profileReply = z.object({
  /** Between two events on the device around the step. */
  deviceMs: z.number(),
  /** The time in which at least one kernel ran. */
  busyUs: z.number(),
  strings: z.array(z.string()),
  /** Names and phases are indices into `strings`; -1 stands for no phase. */
  kernels: z.object({
    name: z.array(z.number()),
    phase: z.array(z.number()),
    durationUs: z.array(z.number()),
  }),
});
const memoryReply = z.object({
  peakAllocatedBytes: z.number().nullable(),
  peakReservedBytes: z.number().nullable(),
});
const errorReply = z.object({
  error: z.object({ name: z.string(), message: z.string(), code: z.string().optional() }),
});

export type PeerDescription = z.infer<typeof readyReply>;
export type PeerBlock = z.infer<typeof runReply>;
export type PeerStepProfile = z.infer<typeof profileReply>;
export type PeerMemory = z.infer<typeof memoryReply>;

/** A failure inside the peer. `code` is `OUT_OF_MEMORY` when PyTorch ran out of memory. */
export class PeerError extends Error {
  override readonly name = 'PeerError';
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** What python/torch_e2e.py prepares; `threads` counts on the CPU only. */
export interface PeerJob {
  readonly config: JsonObject;
  readonly batch: number;
  readonly context: number;
  readonly mode: string;
  readonly dtype: string;
  /** A `PeerAttention`. */
  readonly attention: string;
  readonly device: string;
  readonly seed: number;
  readonly threads: number;
}

/** The same work in PyTorch, in a Python process that waits between requests. */
export class TorchPeer {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #replies: AsyncIterator<string>;
  #stderr = '';

  constructor(python: string, threads: number) {
    this.#process = spawn(python, ['-B', join(pythonDirectory, 'torch_e2e.py')], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, OMP_NUM_THREADS: String(threads), PYTHONUNBUFFERED: '1' },
    });
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-4000);
    });
    this.#process.on('error', (error) => (this.#stderr += error.message));
    // A process that died leaves a broken pipe; the missing reply tells of it.
    this.#process.stdin.on('error', () => {});
    this.#replies = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  prepare(job: PeerJob): Promise<PeerDescription> {
    return this.#request({ command: 'prepare', ...job }, readyReply);
  }

  run(steps: number): Promise<PeerBlock> {
    return this.#request({ command: 'run', steps }, runReply);
  }

  /** Runs one step under PyTorch's profiler. */
  profile(): Promise<PeerStepProfile> {
    return this.#request({ command: 'profile' }, profileReply);
  }

  async resetPeakMemory(): Promise<void> {
    await this.#request({ command: 'reset-peak-memory' }, z.object({}));
  }

  memory(): Promise<PeerMemory> {
    return this.#request({ command: 'memory' }, memoryReply);
  }

  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'close');
    this.#process.stdin.end();
    await ended;
  }

  async #request<T>(request: JsonObject, reply: z.ZodType<T>): Promise<T> {
    this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#replies.next();
    if (done) throw new PeerError(`The PyTorch process ended unexpectedly. It said:\n${this.#stderr.trim()}`);
    const answer = parseReply(value);
    const failure = errorReply.safeParse(answer);
    if (failure.success) {
      const { name, message, code } = failure.data.error;
      throw new PeerError(`${name} in PyTorch: ${message}`, code);
    }
    const { data, error } = reply.safeParse(answer);
    if (error) throw new PeerError(`PyTorch's answer was not understood: ${z.prettifyError(error)}`);
    return data;
  }
}

function parseReply(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new PeerError(`PyTorch's answer is no JSON: ${(error as Error).message}`);
  }
}
