import {
  type Device,
  Generator,
  type Tensor,
  autocast,
  compile,
  keep,
  randint,
  scope,
  zeros,
} from '@roofline/tensor-core';
import { DistributedDataParallel, type ProcessGroup, ShardedOptimizer } from '@roofline/collectives';
import { AdamW, type AdamWOptions } from '@roofline/optim';
import { TransformerLM, countParameters, languageModelLoss } from '@roofline/transformer';
import { policyOf } from '../../memory-saving/kinds.ts';
import type { DdpCell, DdpSettings } from './parameters.ts';
import { profilePass } from './profile-pass.ts';
import type { ProfiledPass, RankResult } from './result.ts';

/** Each of a rank's times, of one step. */
export type StepSample = Record<keyof RankResult['times'], number>;

interface Runs {
  /** Forward and backward. */
  readonly pass: () => void;
  readonly update: () => void;
  readonly step: () => void;
}

/** One rank's side of the training that is timed. All ranks call its methods together. */
export class RankTraining {
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
  #passes = 0;
  /** What is timed, op by op or as programs. */
  readonly #run: Runs;
  readonly #ids: Tensor;
  readonly #targets: Tensor;

  constructor(cell: DdpCell, { bucketBytes, seed }: DdpSettings, device: Device, group: ProcessGroup) {
    const config = { ...cell.shape, contextLength: cell.context };
    const model = new TransformerLM(config, { device, seed, recompute: policyOf(cell.recompute)! });
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
    this.#run = this.#runsOf(cell.execution);
    this.parameterCount = countParameters(config);
    this.bucketBytes = this.#parallel.buckets.map(({ bytes }) => bytes);
  }

  #runsOf(execution: DdpCell['execution']): Runs {
    const runs: Runs = {
      pass: () => this.#backward(),
      update: () => this.#optimizer.step(),
      step: () => {
        this.#backward();
        this.#optimizer.step();
        this.#optimizer.zeroGrad();
      },
    };
    if (execution === 'eager') return runs;
    const options = { autotune: execution === 'autotuned' };
    return {
      pass: compile(runs.pass, options),
      update: compile(runs.update, options),
      step: compile(runs.step, options),
    };
  }

  /** The first step, in which the optimizer makes its state. */
  firstStep(): Pick<RankResult['memory'], 'beforeStepBytes' | 'afterStepBytes'> {
    this.#nextStep();
    this.#backward();
    this.copiedBytes = this.#parallel.copiedBytes;
    const beforeStepBytes = this.#device.allocatedBytes;
    this.#optimizer.step();
    const afterStepBytes = this.#device.allocatedBytes;
    this.#optimizer.zeroGrad();
    return { beforeStepBytes, afterStepBytes };
  }

  /** Each of the times once, all ranks beginning together. */
  sample(): StepSample {
    const localMs = this.#time(() => this.#parallel.noSync(() => this.#pass()));
    this.#optimizer.zeroGrad();
    const synchronizedMs = this.#time(() => this.#pass());
    const optimizerMs = this.#time(() => this.#run.update());
    this.#optimizer.zeroGrad();
    const stepMs = this.#time(() => this.#step());
    const communicationMs = this.#communicate();
    return { localMs, synchronizedMs, optimizerMs, stepMs, communicationMs };
  }

  #step(): void {
    this.#nextStep();
    this.#run.step();
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
    this.#nextStep();
    this.#run.pass();
    // On the CPU a program leaves the last reductions to whoever asks for their memory.
    for (const { grad } of this.#model.parameters()) void grad?.address;
  }

  /** As training does. */
  #nextStep(): void {
    this.#parallel.step = this.#passes++;
  }

  #backward(): void {
    const loss = () =>
      languageModelLoss(this.#model, this.#ids, this.#targets, { logits: this.#cell.logits });
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
