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
  /** What is timed with its communication and without: forward and backward, or of programs the whole step. */
  readonly pass: () => void;
  readonly localPass: () => void;
  /** Null where it is part of the step's program. */
  readonly update: (() => void) | null;
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
    const pass = () => this.#backward();
    const step = () => {
      pass();
      optimizer.step();
      optimizer.zeroGrad();
    };
    if (execution === 'eager') return { pass, localPass: pass, update: () => optimizer.step(), step };
    const compiled = () => compile(step, { autotune: execution === 'autotuned' });
    const program = compiled();
    return { pass: program, localPass: compiled(), update: null, step: program };
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

  /** Each of the times once, all ranks beginning together; 0 where `timed` says that there is none. */
  sample(): StepSample {
    const { optimizer, alone } = this.#trained;
    const localMs = alone ? this.#time(() => alone(() => this.#begin(this.#run.localPass))) : 0;
    optimizer.zeroGrad();
    const synchronizedMs = this.#time(() => this.#begin(this.#run.pass));
    const optimizerMs = this.#run.update ? this.#time(this.#run.update) : 0;
    optimizer.zeroGrad();
    const stepMs = this.#time(() => this.#begin(this.#run.step));
    const communicationMs = scope(() => this.#time(this.#trained.communication()));
    return { localMs, synchronizedMs, optimizerMs, stepMs, communicationMs };
  }

  /** Which of `sample`'s times there are. */
  get timed(): { readonly [Name in 'localMs' | 'optimizerMs']: boolean } {
    return { localMs: this.#trained.alone !== null, optimizerMs: this.#run.update !== null };
  }

  /** One pass with its communication, as the profiler sees it when it has warmed up. */
  async profile(): Promise<ProfiledPass> {
    const passes: ProfiledPass[] = [];
    for (const _ of ['warm-up', 'counts']) {
      this.#device.synchronize();
      this.#group.barrier().wait();
      passes.push(await profilePass(() => this.#begin(this.#run.pass)));
      this.#trained.optimizer.zeroGrad();
    }
    return passes.at(-1)!;
  }

  #begin(run: () => void): void {
    this.#trained.beginPass();
    run();
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
