import type { Device } from '@roofline/tensor-core';
import { describeFailure, prepareCell, startPeer } from '../../peer/cell-peer.ts';
import { peerOfExecution } from '../../peer/kinds.ts';
import type { JaxDescription, PeerBlock, PeerDescription, StepPeer } from '../../peer/step-peer.ts';
import { UntilFailure } from '../../peer/until-failure.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import type { E2eCell, E2eSettings } from './parameters.ts';
import type { PeerResult } from './result.ts';

/** The peer's side of a cell. Its failure does not spoil ours: it becomes part of the result. */
export class PeerContender {
  readonly #asked: UntilFailure<StepPeer>;
  readonly #blocks: PeerBlock[] = [];
  #description: PeerDescription | JaxDescription | null = null;

  private constructor(peer: StepPeer) {
    this.#asked = new UntilFailure(peer);
  }

  static async start(
    cell: E2eCell,
    context: CellContext<E2eSettings>,
    device: Device,
  ): Promise<PeerContender> {
    const { warmup } = context.settings;
    const contender = new PeerContender(startPeer(peerOfExecution(cell.peerExecution), device));
    await contender.#asked.attempt(async (peer) => {
      contender.#description = await prepareCell(peer, cell, context, device);
      if (warmup > 0) await peer.run(warmup);
      await peer.resetPeakMemory();
    });
    return contender;
  }

  run(steps: number): Promise<void> {
    return this.#asked.attempt(async (peer) => void this.#blocks.push(await peer.run(steps)));
  }

  async finish(): Promise<PeerResult> {
    const blocks = this.#blocks;
    const memory = { peakAllocatedBytes: null as number | null, peakReservedBytes: null as number | null };
    await this.#asked.attempt(async (peer) => void Object.assign(memory, await peer.memory()));
    await this.#asked.peer.close();
    const { failure } = this.#asked;
    if (failure !== null) return describeFailure(failure);
    const [first] = blocks;
    const backToBackMs = blocks.flatMap((block) => block.backToBackMs ?? []);
    return {
      status: 'ok',
      ...this.#description!,
      deviceMs: blocks.flatMap((block) => block.deviceMs),
      wallMs: blocks.flatMap((block) => block.wallMs),
      phasesMs: Object.fromEntries(
        Object.keys(first!.phasesMs).map((name) => [name, blocks.flatMap((block) => block.phasesMs[name]!)]),
      ),
      ...(backToBackMs.length > 0 && { backToBackMs }),
      ...(first!.loss !== undefined && { loss: blocks.at(-1)!.loss }),
      ...memory,
    };
  }
}
