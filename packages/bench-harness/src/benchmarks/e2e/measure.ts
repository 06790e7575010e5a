import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import { device as openDevice, type Device } from '@roofline/tensor-core';
import type { CellContext } from '../definition.ts';
import { describeFailure, prepareCell, startPeer } from '../../peer/cell-peer.ts';
import { PeerError } from '../../peer/python-peer.ts';
import type { PeerBlock, PeerDescription, TorchPeer } from '../../peer/torch-peer.ts';
import { alternationBlocks, collectSteps, timeStep, type StepTime } from '../../measuring/timing.ts';
import type { E2eCell, E2eSettings } from './parameters.ts';
import type { E2eResult, PeerResult } from './result.ts';
import { createWorkload, type Workload } from './workload.ts';

/** Times one cell; with a peer, both in turn: A B A B. */
export async function measureE2e(cell: E2eCell, context: CellContext<E2eSettings>): Promise<E2eResult> {
  const { settings } = context;
  const device = openDevice(context.deviceLabel as `cuda:${number}`);
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const warmups = settings.peer ? 2 : 1;
  const total = warmups * settings.warmup + settings.steps;
  let done = 0;
  const run = async (count: number): Promise<StepTime[]> => {
    const times: StepTime[] = [];
    for (let step = 0; step < count; step++) {
      times.push(timeStep(device, (phase) => workload.step(phase)));
      context.progress(++done, total, done <= warmups * settings.warmup ? 'warm-up' : 'steps');
      // Lets finalizers run, and the process notice that its runner is gone.
      await turnOfTheEventLoop();
    }
    return times;
  };

  await run(settings.warmup);
  const contender = settings.peer ? await PeerContender.start(cell, context, device) : null;
  // The peer takes seconds to start. Meanwhile V8 collects garbage and with it compiled code that relied on it.
  if (contender) await run(settings.warmup);
  device.resetPeakMemory();
  const steps: StepTime[] = [];
  for (const count of alternationBlocks(settings.steps)) {
    steps.push(...(await run(count)));
    await contender?.run(count);
  }
  const { peakAllocatedBytes, peakReservedBytes } = device.memoryStatistics();
  return {
    ...collectSteps(steps),
    parameterCount: workload.parameterCount,
    work: workload.work,
    memory: { peakAllocatedBytes, peakReservedBytes },
    loss: finiteOrNull(workload),
    compilation: workload.program?.compilation ?? null,
    peer: contender ? await contender.finish() : null,
  };
}

/** JSON has no NaN; a diverged loss is told as none. */
function finiteOrNull(workload: Workload): number | null {
  const loss = workload.loss();
  return loss !== null && Number.isFinite(loss) ? loss : null;
}

/** PyTorch's side of a cell. Its failure does not spoil ours: it becomes part of the result. */
class PeerContender {
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
