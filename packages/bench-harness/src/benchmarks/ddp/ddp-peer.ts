import { z } from 'zod';
import { sampleList } from '../../measuring/statistics.ts';
import { peerPython } from '../../peer/cell-peer.ts';
import { PythonPeer } from '../../peer/python-peer.ts';
import { readyReply } from '../../peer/step-peer.ts';
import { UntilFailure } from '../../peer/until-failure.ts';
import { type DdpCell, type DdpSettings, isSharded } from './parameters.ts';
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

/** PyTorch's side of a rank, by python/torch_ddp.py. Its failure does not spoil ours: it becomes part of the result. */
export class RankPeer {
  readonly #asked: UntilFailure<PythonPeer>;
  readonly #stepMs: number[] = [];
  #torch = '';
  #peakBytes: number | null = null;

  private constructor(peer: PythonPeer) {
    this.#asked = new UntilFailure(peer);
  }

  /** Starts it and runs `warmup` steps. */
  static async start(cell: DdpCell, settings: DdpSettings, place: PeerPlace): Promise<RankPeer> {
    const rankPeer = new RankPeer(new PythonPeer('torch_ddp.py', peerPython(), place.threads));
    await rankPeer.#asked.attempt(async (peer) => {
      rankPeer.#torch = (await peer.request(jobOf(cell, settings, place), readyReply)).torch;
      if (settings.warmup > 0) await steps(peer, settings.warmup);
    });
    return rankPeer;
  }

  run(count: number): Promise<void> {
    return this.#asked.attempt(async (peer) => {
      const { stepMs, peakBytes } = await steps(peer, count);
      this.#stepMs.push(...stepMs);
      this.#peakBytes = peakBytes;
    });
  }

  async finish(): Promise<RankResult['peer']> {
    await this.#asked.peer.close();
    const { failure } = this.#asked;
    if (failure) return { status: 'failed', error: failure.message };
    return { status: 'ok', torch: this.#torch, stepMs: this.#stepMs, peakBytes: this.#peakBytes };
  }
}

/** PyTorch's default. */
const torchBucketBytes = 25 * 2 ** 20;

function jobOf(cell: DdpCell, settings: DdpSettings, place: PeerPlace) {
  const { shape: config, execution, attention, mode, memoryBudget: _, ...asked } = cell;
  const { backend, bucketBytes: given, seed } = settings;
  const bucketBytes = given ?? torchBucketBytes;
  const device = backend === 'nccl' ? 'cuda:0' : 'cpu';
  const ways = {
    parallelMode: mode,
    // DistributedDataParallel runs op by op, sharded parameters also by torch.compile, block by block.
    execution: isSharded(mode) && execution !== 'eager' ? 'compile' : 'eager',
    attention: attention === 'flash' ? 'sdpa' : 'plain',
  };
  const work = { ...asked, ...ways, ...place, config, backend, bucketBytes, seed, device };
  return { command: 'prepare', ...work, timeoutSeconds: peerTimeoutSeconds };
}

const stepsReply = z.object({ stepMs: sampleList, peakBytes: z.number().nullable() });

async function steps(peer: PythonPeer, steps: number): Promise<z.infer<typeof stepsReply>> {
  return await peer.request({ command: 'run', steps }, stepsReply);
}
