import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import type { JsonObject } from '../records/json.ts';
import { pythonDirectory } from '../paths.ts';
import { reasonOfRank } from '../runner/rank-error.ts';
import { afterMs } from '../runner/timer.ts';

const errorReply = z.object({
  error: z.object({ name: z.string(), message: z.string(), code: z.string().optional() }),
});

/**
 * A failure inside the peer. `code` is `OUT_OF_MEMORY` when it ran out of memory, `NOT_AVAILABLE` when this version of it
 * or this device has no such thing.
 */
export class PeerError extends Error {
  override readonly name = 'PeerError';
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** To leave CUDA takes Python some seconds. */
const EXIT_GRACE_MS = 10_000;

/** A Python process that waits between requests; see python/peer_protocol.py. */
export class PythonPeer {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #replies: AsyncIterator<string>;
  readonly #stderrClosed: Promise<unknown>;
  readonly #title: string;
  #stderr = '';

  /** `script` is in python/; `title` is what it runs in, as messages name it. */
  constructor(script: string, python: string, threads: number, title = 'PyTorch') {
    this.#title = title;
    this.#process = spawn(python, ['-B', join(pythonDirectory, script)], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, OMP_NUM_THREADS: String(threads), PYTHONUNBUFFERED: '1' },
    });
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-4000);
    });
    this.#stderrClosed = new Promise((resolve) => this.#process.stderr.once('close', resolve));
    this.#process.on('error', (error) => (this.#stderr += error.message));
    // A process that died leaves a broken pipe; the missing reply reports it.
    this.#process.stdin.on('error', () => {});
    this.#replies = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** A process that does not end on its own, for example because its threads hang, is killed, so that no measurement is lost. */
  async close(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#process.stdin.end();
    const callOff = afterMs(EXIT_GRACE_MS, () => this.#process.kill('SIGKILL'));
    await ended;
    callOff();
  }

  /** Throws PeerError for what fails inside the peer. */
  async request<T>(request: JsonObject, reply: z.ZodType<T>): Promise<T> {
    this.#process.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#replies.next();
    if (done) throw new PeerError(await this.#howItEnded());
    const answer = this.#parse(value);
    const failure = errorReply.safeParse(answer);
    if (failure.success) {
      const { name, message, code } = failure.data.error;
      throw new PeerError(`${name} in ${this.#title}: ${message}`, code);
    }
    const { data, error } = reply.safeParse(answer);
    if (error) throw new PeerError(`${this.#title}'s answer was not understood: ${z.prettifyError(error)}`);
    return data;
  }

  /** Why in the first line, which is what tables and findings have room for. */
  async #howItEnded(): Promise<string> {
    // Its last words may come after the end of its answers.
    await this.#stderrClosed;
    const said = this.#stderr.trim();
    return `The ${this.#title} process ended unexpectedly: ${reasonOfRank(said.split('\n'))}\n${said}`.trim();
  }

  #parse(line: string): unknown {
    try {
      return JSON.parse(line);
    } catch (error) {
      throw new PeerError(`${this.#title}'s answer is no JSON: ${(error as Error).message}`);
    }
  }
}
