import { setImmediate as turnOfTheEventLoop } from 'node:timers/promises';
import {
  Generator,
  type Device,
  type Tensor,
  autocast,
  device as openDevice,
  keep,
  randint,
  scope,
  zeros,
} from '@roofline/tensor-core';
import {
  DistributedDataParallel,
  type ProcessGroup,
  ShardedOptimizer,
  initProcessGroup,
} from '@roofline/collectives';
import { AdamW, type AdamWOptions } from '@roofline/optim';
import { TransformerLM, countParameters, languageModelLoss } from '@roofline/transformer';
import { alternationBlocks } from '../../measuring/timing.ts';
import { RankPeer, timeoutBesidePeerMs } from './ddp-peer.ts';
import type { DdpCell, DdpSettings } from './parameters.ts';
import { sendRankEvent } from './rank-lines.ts';
import { profilePass } from './profile-pass.ts';
import type { ProfiledPass, RankResult } from './result.ts';

/** What a rank is to measure. */
export interface RankJob {
  readonly cell: DdpCell;
  readonly settings: DdpSettings;
  readonly threads: number | null;
  /** Where the peer's ranks meet. */
  readonly peerPort: number;
}

/** Measures one rank's side of a cell. */
export async function runRank({ cell, settings, threads, peerPort }: RankJob): Promise<void> {
  // The rank's environment shows it one GPU.
  const device = openDevice(settings.backend === 'nccl' ? 'cuda' : 'cpu');
  const group = await initProcessGroup({
    backend: settings.backend,
    ...(settings.peer && { timeoutMs: timeoutBesidePeerMs }),
  });
  const training = new Training(cell, settings, device, group);
  const memory = training.firstStep();
  const { warmup, steps } = settings;
  const times: RankResult['times'] = {
    stepMs: [],
    synchronizedMs: [],
    localMs: [],
    optimizerMs: [],
    communicationMs: [],
  };
  let done = 0;
  const run = async (count: number, counts: boolean): Promise<void> => {
    for (let step = 0; step < count; step++) {
      const sample = Object.entries(training.sample()) as [keyof typeof times, number][];
      if (counts) for (const [name, ms] of sample) times[name].push(ms);
      if (group.rank === 0) sendRankEvent({ type: 'progress', done: ++done, total: warmup + steps });
      await turnOfTheEventLoop();
    }
  };
  await run(warmup, false);
  const place = { rank: group.rank, port: peerPort, threads: threads ?? 1 };
  const peer = settings.peer ? await RankPeer.start(cell, settings, place) : null;
  device.resetPeakMemory();
  for (const count of alternationBlocks(steps)) {
    await run(count, true);
    await peer?.run(count);
  }
  const { peakAllocatedBytes: peakBytes } = device.memoryStatistics();
  const { bucketBytes, copiedBytes, parameterCount } = training;
  sendRankEvent({
    type: 'result',
    result: {
      ...{ rank: group.rank, times, memory: { ...memory, peakBytes }, parameterCount, threads },
      ...{ bucketBytes, copiedBytes, profiledPass: await training.profile() },
      peer: peer ? await peer.finish() : null,
    },
  });
  group.dispose();
}

class Training {
  readonly parameterCount: number;
  /** Bytes of each reduction of a step. */
  readonly bucketBytes: number[];
  /** Bytes of gradients that the first pass copied into buckets. */
  copiedBytes = 0;
  readonly #cell: DdpCell;
  readonly #device: Device;
  readonly #group: ProcessGroup;
  readonly #model: TransformerLM;
  readonly #parallel: DistributedDataParallel;
  readonly #optimizer: AdamW | ShardedOptimizer<AdamWOptions>;
  readonly #ids: Tensor;
  readonly #targets: Tensor;

  constructor(cell: DdpCell, { bucketBytes, seed }: DdpSettings, device: Device, group: ProcessGroup) {
    const config = { ...cell.shape, contextLength: cell.context };
    const model = new TransformerLM(config, { device, seed });
    this.#cell = cell;
    this.#device = device;
    this.#group = group;
    this.#model = model;
    this.#parallel = new DistributedDataParallel(model, group, { mode: cell.mode, bucketBytes });
    this.#optimizer =
      cell.optimizer === 'whole'
        ? new AdamW(model.parameters())
        : new ShardedOptimizer(model.parameters(), AdamW, group);
    const generator = new Generator(seed + 1 + group.rank);
    const tokens = () =>
      keep(
        randint(0, config.vocabularySize, [cell.batch, cell.context], { generator, device, dtype: 'int64' }),
      );
    [this.#ids, this.#targets] = [tokens(), tokens()];
    this.parameterCount = countParameters(config);
    this.bucketBytes = this.#parallel.buckets.map(({ bytes }) => bytes);
  }

  /** The first step, in which the optimizer makes its state. */
  firstStep(): Pick<RankResult['memory'], 'beforeStepBytes' | 'afterStepBytes'> {
    this.#pass();
    this.copiedBytes = this.#parallel.copiedBytes;
    const beforeStepBytes = this.#device.allocatedBytes;
    this.#optimizer.step();
    const afterStepBytes = this.#device.allocatedBytes;
    this.#optimizer.zeroGrad();
    return { beforeStepBytes, afterStepBytes };
  }

  /** Each of the times once, all ranks beginning together. */
  sample(): Record<keyof RankResult['times'], number> {
    const localMs = this.#time(() => this.#parallel.noSync(() => this.#pass()));
    this.#optimizer.zeroGrad();
    const synchronizedMs = this.#time(() => this.#pass());
    const optimizerMs = this.#time(() => this.#optimizer.step());
    this.#optimizer.zeroGrad();
    const stepMs = this.#time(() => this.#step());
    const communicationMs = this.#communicate();
    return { localMs, synchronizedMs, optimizerMs, stepMs, communicationMs };
  }

  #step(): void {
    this.#pass();
    this.#optimizer.step();
    this.#optimizer.zeroGrad();
  }

  /** One pass with its communication, as the profiler sees it when it has warmed up. */
  async profile(): Promise<ProfiledPass> {
    const passes: ProfiledPass[] = [];
    for (const _ of ['warm-up', 'counts']) {
      this.#device.synchronize();
      this.#group.barrier().wait();
      passes.push(await profilePass(() => this.#pass()));
      this.#optimizer.zeroGrad();
    }
    return passes.at(-1)!;
  }

  #pass(): void {
    const loss = () => languageModelLoss(this.#model, this.#ids, this.#targets);
    scope(() => {
      const result = this.#cell.dtype === 'float32' ? loss() : autocast(this.#cell.dtype, loss);
      result.backward();
    });
  }

  /** The reductions of one step, all started before the first is waited for. */
  #communicate(): number {
    return scope(() => {
      const device = this.#device;
      const gradients = this.bucketBytes.map((bytes) =>
        zeros([bytes / Float32Array.BYTES_PER_ELEMENT], { device }),
      );
      return this.#time(() => {
        const works = gradients.map((gradient) => this.#group.allReduce(gradient, { op: 'average' }));
        for (const work of works) work.wait();
      });
    });
  }

  #time(work: () => void): number {
    this.#device.synchronize();
    this.#group.barrier().wait();
    const start = performance.now();
    work();
    this.#device.synchronize();
    return performance.now() - start;
  }
}
