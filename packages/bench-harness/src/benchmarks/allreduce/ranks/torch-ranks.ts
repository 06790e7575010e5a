import { freePort } from '../../../peer/free-port.ts';
import { PythonPeer } from '../../../peer/python-peer.ts';
import type { CollectiveBackend } from '../parameters.ts';
import { type Ranks, type TurnReply, type TurnRequest, turnReply } from './turns.ts';

/** PyTorch's ranks, by python/torch_collectives.py. Every request may throw a PeerError. */
export class TorchRanks implements Ranks {
  readonly #ranks: readonly PythonPeer[];

  constructor(python: string, count: number) {
    this.#ranks = Array.from({ length: count }, () => new PythonPeer('torch_collectives.py', python, 1));
  }

  async join(backend: CollectiveBackend): Promise<void> {
    const port = await freePort();
    const shared = { command: 'join', backend, ranks: this.#ranks.length, port };
    await Promise.all(this.#ranks.map((peer, rank) => peer.request({ ...shared, rank }, turnReply)));
  }

  ask(request: TurnRequest): Promise<TurnReply[]> {
    return Promise.all(this.#ranks.map((rank) => rank.request(request, turnReply)));
  }

  async end(): Promise<void> {
    await Promise.all(this.#ranks.map((rank) => rank.close()));
  }
}
