import type { Device } from '@roofline/tensor-core';
import { describeFailure, prepareCell, startPeer } from '../../peer/cell-peer.ts';
import { PeerError } from '../../peer/python-peer.ts';
import type { PeerBlock, PeerDescription, TorchPeer } from '../../peer/torch-peer.ts';
import type { CellContext } from '../definition.ts';
import type { E2eCell, E2eSettings } from './parameters.ts';
import type { PeerResult } from './result.ts';

/** PyTorch's side of a cell. Its failure does not spoil ours: it becomes part of the result. */
export class PeerContender {
  readonly #peer: TorchPeer;
  readonly #blocks: PeerBlock[] = [];
  #description: PeerDescription | null = null;
  #failure: PeerError | null = null;

  private constructor(peer: TorchPeer) {
    this.#peer = peer;
  }

  static async start(
    cell: E2eCell,
    context: CellContext<E2eSettings>,
    device: Device,
  ): Promise<PeerContender> {
    const { warmup } = context.settings;
    const contender = new PeerContender(startPeer(device));
    await contender.#attempt(async (peer) => {
      contender.#description = await prepareCell(peer, cell, context, device);
      if (warmup > 0) await peer.run(warmup);
      await peer.resetPeakMemory();
    });
    return contender;
  }

  run(steps: number): Promise<void> {
    return this.#attempt(async (peer) => void this.#blocks.push(await peer.run(steps)));
  }

  async finish(): Promise<PeerResult> {
    const blocks = this.#blocks;
    const memory = { peakAllocatedBytes: null as number | null, peakReservedBytes: null as number | null };
    await this.#attempt(async (peer) => void Object.assign(memory, await peer.memory()));
    await this.#peer.close();
    if (this.#failure !== null) return describeFailure(this.#failure);
    const names = Object.keys(blocks[0]!.phasesMs);
    return {
      status: 'ok',
      ...this.#description!,
      deviceMs: blocks.flatMap((block) => block.deviceMs),
      wallMs: blocks.flatMap((block) => block.wallMs),
      phasesMs: Object.fromEntries(
        names.map((name) => [name, blocks.flatMap((block) => block.phasesMs[name]!)]),
      ),
      ...memory,
    };
  }

  async #attempt(work: (peer: TorchPeer) => Promise<void>): Promise<void> {
    if (this.#failure !== null) return;
    try {
      await work(this.#peer);
    } catch (error) {
      if (!(error instanceof PeerError)) throw error;
      this.#failure = error;
    }
  }
}
