import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';
import { peerPython } from '../../peer/cell-peer.ts';
import { PythonPeer } from '../../peer/python-peer.ts';
import { readyReply } from '../../peer/torch-peer.ts';
import { UntilFailure } from '../../peer/until-failure.ts';
import type { DdpCell, DdpSettings } from './parameters.ts';
import type { RankResult } from './result.ts';

/** How long PyTorch's ranks wait for each other. */
const peerTimeoutSeconds = 120;

/**
 * How long ours wait for each other while the peer's run: longer, so that one is not given up while its peer waits in
 * vain.
 */
export const timeoutBesidePeerMs = 1.5 * peerTimeoutSeconds * 1000;

/** Where a rank of the peer finds the others. */
export interface PeerPlace {
  readonly rank: number;
  readonly port: number;
  readonly threads: number;
}

/** One rank of the same training in PyTorch, by python/torch_ddp.py. */
class TorchRank extends PythonPeer {
  constructor(threads: number) {
    super('torch_ddp.py', peerPython(), threads);
  }

  prepare({ shape: config, ...cell }: DdpCell, settings: DdpSettings, place: PeerPlace) {
    const { backend, bucketBytes, seed } = settings;
    const device = backend === 'nccl' ? 'cuda:0' : 'cpu';
    const timeoutSeconds = peerTimeoutSeconds;
    const job = { ...cell, ...place, config, backend, bucketBytes, seed, device, timeoutSeconds };
    return this.request({ command: 'prepare', ...job }, readyReply);
  }

  run(steps: number) {
    return this.request({ command: 'run', steps }, z.object({ stepMs: sampleList }));
  }
}

/** PyTorch's side of a rank. Its failure does not spoil ours: it becomes part of the result. */
export class RankPeer {
  readonly #asked: UntilFailure<TorchRank>;
  readonly #stepMs: number[] = [];
  #torch = '';

  private constructor(peer: TorchRank) {
    this.#asked = new UntilFailure(peer);
  }

  /** Starts it and runs `warmup` steps. */
  static async start(cell: DdpCell, settings: DdpSettings, place: PeerPlace): Promise<RankPeer> {
    const rankPeer = new RankPeer(new TorchRank(place.threads));
    await rankPeer.#asked.attempt(async (peer) => {
      rankPeer.#torch = (await peer.prepare(cell, settings, place)).torch;
      if (settings.warmup > 0) await peer.run(settings.warmup);
    });
    return rankPeer;
  }

  run(steps: number): Promise<void> {
    return this.#asked.attempt(async (peer) => void this.#stepMs.push(...(await peer.run(steps)).stepMs));
  }

  async finish(): Promise<RankResult['peer']> {
    await this.#asked.peer.close();
    const { failure } = this.#asked;
    if (failure) return { status: 'failed', error: failure.message };
    return { status: 'ok', torch: this.#torch, stepMs: this.#stepMs };
  }
}
