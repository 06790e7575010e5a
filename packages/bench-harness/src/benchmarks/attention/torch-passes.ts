import type { Device } from '@roofline/tensor-core';
import { z } from 'zod';
import type { TorchAttention } from '../../attention/peer-kinds.ts';
import { timeList } from '../../measuring/statistics.ts';
import { describeFailure, peerPython, threadsOf } from '../../peer/cell-peer.ts';
import { PythonPeer } from '../../peer/python-peer.ts';
import { readyReply, type PeerDescription } from '../../peer/step-peer.ts';
import { UntilFailure } from '../../peer/until-failure.ts';
import type { AttentionCell, AttentionSettings } from './parameters.ts';
import type { AttentionPeer } from './result.ts';

const timed = z.object({
  deviceMs: timeList,
  wallMs: timeList,
  beforeBackwardBytes: z.number().nullable(),
  peakAllocatedBytes: z.number().nullable(),
});
type Timed = z.infer<typeof timed>;
type Peer = Pick<PythonPeer, 'request' | 'close'>;

/** To load PyTorch takes seconds: the cells of a process have one, which ends with it. */
let kept: PythonPeer | null = null;

function keptPeer(device: Device): PythonPeer {
  kept ??= new PythonPeer('torch_attention.py', peerPython(), threadsOf(device));
  return kept;
}

/** PyTorch's side of a cell: the same passes, in turn with ours. Its failure does not spoil ours. */
export class TorchPasses {
  readonly #attention: TorchAttention;
  readonly #asked: UntilFailure<Peer>;
  readonly #blocks: Record<'forward' | 'backward', Timed[]> = { forward: [], backward: [] };
  #description: PeerDescription | null = null;

  private constructor(attention: TorchAttention, peer: Peer) {
    this.#attention = attention;
    this.#asked = new UntilFailure(peer);
  }

  /** Has the operands made, and passes run that do not count. */
  static async start(
    attention: TorchAttention,
    cell: AttentionCell,
    { warmup, seed }: Pick<AttentionSettings, 'warmup' | 'seed'>,
    device: Device,
    peer: Peer = keptPeer(device),
  ): Promise<TorchPasses> {
    const { batch, sequence, headDimension, dtype } = cell;
    const shape = { batch, heads: 1, sequence, headDimension, dtype, mask: 'causal' };
    const how = {
      device: device.label,
      seed,
      threads: threadsOf(device),
      flushedBytes: 0,
      keepsGraph: false,
    };
    const passes = new TorchPasses(attention, peer);
    await passes.#asked.attempt(async (asked) => {
      passes.#description = await asked.request({ command: 'prepare', ...shape, ...how }, readyReply);
    });
    // A backward pass has a forward pass before it.
    if (warmup > 0) await passes.#time('backward', warmup);
    return passes;
  }

  async time(pass: 'forward' | 'backward', count: number): Promise<void> {
    const times = await this.#time(pass, count);
    if (times) this.#blocks[pass].push(times);
  }

  async finish(): Promise<AttentionPeer> {
    const { peer } = this.#asked;
    await this.#asked.attempt(async () => void (await peer.request({ command: 'release' }, z.object({}))));
    const { failure } = this.#asked;
    if (failure !== null) {
      // What it has left on the device is not known.
      await peer.close();
      kept = null;
      return describeFailure(failure);
    }
    const { forward, backward } = this.#blocks;
    const most = (values: readonly (number | null)[]) =>
      values.includes(null) ? null : Math.max(...(values as number[]));
    return {
      status: 'ok',
      attention: this.#attention,
      ...this.#description!,
      ...{ forward: joined(forward), backward: joined(backward) },
      memory: {
        beforeBackwardBytes: most(backward.map((block) => block.beforeBackwardBytes)),
        peakAllocatedBytes: most(backward.map((block) => block.peakAllocatedBytes)),
      },
    };
  }

  async #time(pass: 'forward' | 'backward', count: number): Promise<Timed | null> {
    let times: Timed | null = null;
    const request = { command: 'time', attention: this.#attention, pass, count };
    await this.#asked.attempt(async (peer) => void (times = await peer.request(request, timed)));
    return times;
  }
}

function joined(blocks: readonly Timed[]): { deviceMs: number[]; wallMs: number[] } {
  return {
    deviceMs: blocks.flatMap(({ deviceMs }) => deviceMs),
    wallMs: blocks.flatMap(({ wallMs }) => wallMs),
  };
}
