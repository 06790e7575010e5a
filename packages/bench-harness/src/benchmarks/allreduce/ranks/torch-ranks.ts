import { freePort } from '../../../peer/free-port.ts';
import { PythonPeer } from '../../../peer/python-peer.ts';
import type { CollectiveBackend } from '../parameters.ts';
import { type Ranks, type TurnReply, type TurnRequest, turnReply } from './turns.ts';

/** One rank of torch.distributed, by python/torch_collectives.py. */
class TorchRank extends PythonPeer {
  constructor(python: string) {
    super('torch_collectives.py', python, 1);
  }

  join(backend: CollectiveBackend, rank: number, ranks: number, port: number): Promise<TurnReply> {
    return this.request({ command: 'join', backend, rank, ranks, port }, turnReply);
  }

  ask(request: TurnRequest): Promise<TurnReply> {
    return this.request(request, turnReply);
  }
}

/** PyTorch's ranks. Every request may throw a PeerError. */
export class TorchRanks implements Ranks {
  readonly #ranks: readonly TorchRank[];

  constructor(python: string, count: number) {
    this.#ranks = Array.from({ length: count }, () => new TorchRank(python));
  }

  async join(backend: CollectiveBackend): Promise<void> {
    const port = await freePort();
    await Promise.all(this.#ranks.map((rank, i) => rank.join(backend, i, this.#ranks.length, port)));
  }

  ask(request: TurnRequest): Promise<TurnReply[]> {
    return Promise.all(this.#ranks.map((rank) => rank.ask(request)));
  }

  async end(): Promise<void> {
    await Promise.all(this.#ranks.map((rank) => rank.close()));
  }
}
