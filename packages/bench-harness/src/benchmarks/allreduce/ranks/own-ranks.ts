import { type LaunchResult, StoreClient, StoreServer, launch } from '@roofline/collectives';
import { randomBytes } from 'node:crypto';
import { RankError } from '../../../errors.ts';
import { collectiveRankProgram } from '../../../paths.ts';
import { rankError } from '../../../runner/rank-error.ts';
import type { CollectiveBackend } from '../parameters.ts';
import { type Ranks, type TurnReply, type TurnRequest, turnReply } from './turns.ts';

/** Ranks may take their time over a gigabyte. */
const patienceMs = 2 ** 30;

/** Our ranks: processes that `launch` starts, and that take their turns from a store of this one. */
export class OwnRanks implements Ranks {
  readonly #count: number;
  readonly #server: StoreServer;
  readonly #store: StoreClient;
  readonly #ended: Promise<LaunchResult>;
  #turns = 0;

  private constructor(
    backend: CollectiveBackend,
    count: number,
    server: StoreServer,
    store: StoreClient,
    token: string,
  ) {
    this.#count = count;
    this.#server = server;
    this.#store = store;
    this.#ended = launch({
      processes: count,
      script: collectiveRankProgram,
      args: [backend, String(server.port)],
      // By their environment, which others cannot read as they can a command line; the ranks' own store has it too.
      token,
      // The result has the last lines of the first rank that fails.
      write: () => {},
    });
    // A rank that ends is noticed by the turn that waits for it.
    this.#ended.catch(() => {});
  }

  static async start(backend: CollectiveBackend, count: number): Promise<OwnRanks> {
    const token = randomBytes(16).toString('hex');
    const server = await StoreServer.listen({ token });
    const store = await StoreClient.connect({ host: '127.0.0.1', port: server.port, token });
    return new OwnRanks(backend, count, server, store, token);
  }

  async ask(request: TurnRequest): Promise<TurnReply[]> {
    const turn = this.#turns++;
    const keys = Array.from({ length: this.#count }, (_, rank) => `reply/${turn}/${rank}`);
    await this.#store.set(`turn/${turn}`, JSON.stringify(request));
    const answered = this.#store.wait(keys, { timeoutMs: patienceMs });
    const died = this.#ended.then(({ failure }) => {
      throw failure ? rankError(failure) : new RankError('The ranks ended before they had answered.');
    });
    await Promise.race([answered, died]);
    const replies = await Promise.all(keys.map(async (key) => this.#readReply(key)));
    const failed = replies.find(({ error }) => error)?.error;
    if (failed) throw new RankError(`${failed.name}: ${failed.message}`);
    return replies;
  }

  async end(): Promise<void> {
    await this.#store.set(`turn/${this.#turns}`, JSON.stringify({ command: 'end' } satisfies TurnRequest));
    await this.#ended.catch(() => {});
    this.#store.close();
    this.#server.close();
  }

  async #readReply(key: string): Promise<TurnReply> {
    return turnReply.parse(JSON.parse(new TextDecoder().decode(await this.#store.get(key))));
  }
}
