import { Worker } from 'node:worker_threads';
import { StoreError } from '../errors.ts';
import { packageProgram, threadFlags } from '../package-program.ts';
import type { StoreServerOptions } from './store-server.ts';

/** Places of those that live. */
const living = new Set<string>();

/** Threads that are about to end, and hold their ports until then. */
const ending = new Set<Promise<number>>();

/**
 * A StoreServer on a thread of its own, which answers while this one is blocked: a rank may wait for others that are still
 * to agree on a group of theirs, by the store. It does not keep the process alive.
 */
export class HostedStore {
  readonly #thread: Worker;
  readonly #place: string;

  private constructor(thread: Worker, place: string) {
    this.#thread = thread;
    this.#place = place;
    living.add(place);
  }

  /** Starts one. Throws a StoreError if it cannot listen there, as where another one of this process does. */
  static async listen(options: StoreServerOptions): Promise<HostedStore> {
    const place = `${options.host}:${options.port}`;
    if (living.has(place))
      throw new StoreError(
        `initProcessGroup: this process hosts the store at ${place} for a group that lives; dispose() that first, or make ` +
          'a group of its ranks by subGroup().',
      );
    await Promise.all(ending);
    const thread = new Worker(packageProgram('store-thread'), {
      name: 'roofline-store',
      execArgv: threadFlags(),
      workerData: options,
    });
    const refusal = await new Promise<string | null>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
    });
    if (refusal !== null) {
      await thread.terminate();
      throw new StoreError(refusal);
    }
    // An error that it meets from here on is one of this process.
    thread.removeAllListeners('error');
    thread.unref();
    return new HostedStore(thread, place);
  }

  /** Ends all connections. */
  close(): void {
    living.delete(this.#place);
    const end = this.#thread.terminate();
    ending.add(end);
    void end.finally(() => ending.delete(end));
  }
}
