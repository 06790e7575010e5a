import {
  type Device,
  Generator,
  type Tensor,
  autocast,
  compile,
  keep,
  randint,
  scope,
} from '@roofline/tensor-core';
import type { ProcessGroup } from '@roofline/collectives';
import { countParameters, languageModelLoss } from '@roofline/transformer';
import { type DdpCell, type DdpSettings, tensorRanksOf } from './parameters.ts';
import { profilePass } from './profile-pass.ts';
import type { RankModel } from './rank-model.ts';
import type { ProfiledPass, RankResult } from './result.ts';

/** Each of a rank's times, of one step. */
export type StepSample = { readonly [Name in keyof RankResult['times']]: number };

interface Runs {
  /** Forward and backward. */
  readonly pass: () => void;
  readonly update: () => void;
  readonly step: () => void;
}

/** One rank's side of the training that is timed. All ranks call its methods together. */
export class RankTraining {
  readonly parameterCount: number;
  /** Bytes of gradients that the first pass copied into buckets. */
  copiedBytes = 0;
  readonly #cell: DdpCell;
  readonly #device: Device;
  readonly #group: ProcessGroup;
  readonly #trained: RankModel;
  readonly #builtBytes: number;
  /** What is timed, op by op or as programs. */
  readonly #run: Runs;
  readonly #ids: Tensor;
  readonly #targets: Tensor;

  constructor(trained: RankModel, cell: DdpCell, { seed }: DdpSettings, device: Device, group: ProcessGroup) {
    const config = { ...cell.shape, contextLength: cell.context };
    this.#builtBytes = device.allocatedBytes;
    this.#cell = cell;
    this.#device = device;
    this.#group = group;
    this.#trained = trained;
    // Ranks that share layers have the same tokens, those of all of them.
    const sharing = tensorRanksOf(cell);
    const generator = new Generator(seed + 1 + Math.floor(group.rank / sharing));
    const shape = [cell.batch * sharing, cell.context];
    const tokens = () =>
      keep(randint(0, config.vocabularySize, shape, { generator, device, dtype: 'int64' }));
    [this.#ids, this.#targets] = [tokens(), tokens()];
    this.#run = this.#runsOf(cell.execution);
    this.parameterCount = countParameters(config);
  }

  #runsOf(execution: DdpCell['execution']): Runs {
    const { optimizer } = this.#trained;
    const runs: Runs = {
      pass: () => this.#backward(),
      update: () => optimizer.step(),
      step: () => {
        this.#backward();
        optimizer.step();
        optimizer.zeroGrad();
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

  /** Bytes of each reduction of a step. */
  get bucketBytes(): number[] {
    return [...this.#trained.bucketBytes];
  }

  /** The first step, in which the optimizer makes its state. */
  firstStep(): Omit<RankResult['memory'], 'peakBytes'> {
    this.#trained.beginPass();
    this.#backward();
    this.copiedBytes = this.#trained.copiedBytes;
    const beforeStepBytes = this.#device.allocatedBytes;
    this.#trained.optimizer.step();
    const afterStepBytes = this.#device.allocatedBytes;
    this.#trained.optimizer.zeroGrad();
    return { builtBytes: this.#builtBytes, beforeStepBytes, afterStepBytes };
  }

  /** Each of the times once, all ranks beginning together; `localMs` is 0 where there is no pass without communication. */
  sample(): StepSample {
    const { optimizer, alone } = this.#trained;
    const localMs = alone ? this.#time(() => alone(() => this.#pass())) : 0;
    optimizer.zeroGrad();
    const synchronizedMs = this.#time(() => this.#pass());
    const optimizerMs = this.#time(() => this.#run.update());
    optimizer.zeroGrad();
    const stepMs = this.#time(() => this.#step());
    const communicationMs = scope(() => this.#time(this.#trained.communication()));
    return { localMs, synchronizedMs, optimizerMs, stepMs, communicationMs };
  }

  /** Whether `sample` times passes without communication. */
  get hasLocalPasses(): boolean {
    return this.#trained.alone !== null;
  }

  #step(): void {
    this.#trained.beginPass();
    this.#run.step();
  }

  /** One pass with its communication, as the profiler sees it when it has warmed up. */
  async profile(): Promise<ProfiledPass> {
    const passes: ProfiledPass[] = [];
    for (const _ of ['warm-up', 'counts']) {
      this.#device.synchronize();
      this.#group.barrier().wait();
      passes.push(await profilePass(() => this.#pass()));
      this.#trained.optimizer.zeroGrad();
    }
    return passes.at(-1)!;
  }

  #pass(): void {
    this.#trained.beginPass();
    this.#run.pass();
    // On the CPU a program leaves the last reductions to whoever asks for their memory.
    if (this.#cell.execution !== 'eager')
      for (const { grad } of this.#trained.model.parameters()) void grad?.address;
  }

  #backward(): void {
    const loss = () =>
      languageModelLoss(this.#trained.model, this.#ids, this.#targets, { logits: this.#cell.logits });
    scope(() => {
      const result = this.#cell.dtype === 'float32' ? loss() : autocast(this.#cell.dtype, loss);
      result.backward();
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
