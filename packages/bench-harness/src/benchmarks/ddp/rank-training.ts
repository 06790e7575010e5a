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
import { noBudget } from '../../memory-saving/kinds.ts';
import { type DdpCell, type DdpSettings, contextRanksOf, tensorRanksOf } from './parameters.ts';
import { profilePass } from './profile-pass.ts';
import type { RankModel } from './rank-model.ts';
import type { ProfiledPass, RankResult } from './result.ts';

type Times = RankResult['times'];

/** Each of a rank's times, of one step. */
export type StepSample = { readonly [Name in keyof Times]: number };

interface Runs {
  /** What is timed with its communication and without: forward and backward, or of programs the whole step. */
  readonly pass: () => void;
  readonly localPass: () => void;
  /** Null where it is part of the step's program. */
  readonly update: (() => void) | null;
  readonly step: () => void;
  dispose(): void;
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
    // Ranks that share layers have the same tokens, those of all of them; those that share sequences have parts of the same.
    const sharing = tensorRanksOf(cell);
    const generator = new Generator(seed + 1 + Math.floor(group.rank / sharing / contextRanksOf(cell)));
    const shape = [cell.batch * sharing, cell.context];
    const { divideTokens } = trained;
    const tokens = () =>
      scope(() => {
        const whole = randint(0, config.vocabularySize, shape, { generator, device, dtype: 'int64' });
        return keep(divideTokens?.(whole) ?? whole);
      });
    [this.#ids, this.#targets] = [tokens(), tokens()];
    this.#run = this.#runsOf(cell);
    this.parameterCount = countParameters(config);
  }

  #runsOf({ execution, memoryBudget }: DdpCell): Runs {
    const { optimizer } = this.#trained;
    const pass = () => this.#backward();
    const step = () => {
      pass();
      optimizer.step();
      optimizer.zeroGrad();
    };
    if (execution === 'eager')
      return { ...{ pass, localPass: pass, update: () => optimizer.step(), step }, dispose() {} };
    const budget = memoryBudget === noBudget ? {} : { memoryBudget };
    const options = { autotune: execution === 'autotuned', ...budget };
    const [program, local] = [step, step].map((run) => compile(run, options));
    return {
      ...{ pass: program!, localPass: local!, update: null, step: program! },
      dispose: () => [program, local].forEach((run) => run!.dispose()),
    };
  }

  /** Bytes of each reduction of a step. */
  get bucketBytes(): number[] {
    return [...this.#trained.bucketBytes];
  }

  /**
   * The first steps: memory around that in which the optimizer makes its state, op by op, then the peak of one like those that are
   * timed, with no other program there, and how long after its start the process had made the first of those.
   */
  firstSteps(): { readonly memory: RankResult['memory']; readonly coldStartMs: number } {
    const held = this.#firstStep();
    // The memory that a step leaves to the next is not that of a program.
    this.#device.emptyCache();
    this.#begin(this.#run.step);
    // A program that is traced replays from the next call on; one that has found a new order of gathers from the one after.
    if (this.#cell.execution !== 'eager') for (let i = 0; i < 2; i++) this.#begin(this.#run.step);
    this.#device.synchronize();
    const coldStartMs = performance.now();
    this.#device.resetPeakMemory();
    this.#begin(this.#run.step);
    const { peakAllocatedBytes: peakBytes } = this.#device.memoryStatistics();
    return { memory: { ...held, peakBytes }, coldStartMs };
  }

  #firstStep(): Omit<RankResult['memory'], 'peakBytes'> {
    this.#trained.beginPass();
    this.#backward();
    this.copiedBytes = this.#trained.copiedBytes;
    const beforeStepBytes = this.#device.allocatedBytes;
    this.#trained.optimizer.step();
    const afterStepBytes = this.#device.allocatedBytes;
    this.#trained.optimizer.zeroGrad();
    return { builtBytes: this.#builtBytes, beforeStepBytes, afterStepBytes };
  }

  /** Each of the times once, all ranks beginning together; 0 for those that `timesOf` leaves out. */
  sample(): StepSample {
    const { optimizer, alone } = this.#trained;
    const { pass, localPass, update, step } = this.#run;
    const localMs = alone ? this.#time(() => alone(() => this.#begin(localPass))) : 0;
    optimizer.zeroGrad();
    const synchronizedMs = this.#timesPasses ? this.#time(() => this.#begin(pass)) : 0;
    const optimizerMs = update ? this.#time(update) : 0;
    optimizer.zeroGrad();
    const stepMs = this.#time(() => this.#begin(step));
    const communicationMs = scope(() => this.#time(this.#trained.communication()));
    return { localMs, synchronizedMs, optimizerMs, stepMs, communicationMs };
  }

  /** Those of the times that there are. */
  timesOf(measured: { readonly [Name in keyof Times]: NonNullable<Times[Name]> }): Times {
    return {
      ...measured,
      localMs: this.#trained.alone ? measured.localMs : null,
      synchronizedMs: this.#timesPasses ? measured.synchronizedMs : null,
      optimizerMs: this.#run.update ? measured.optimizerMs : null,
    };
  }

  /** Whether a pass is timed apart from a step: with the update in its program, only to compare it to one without communication. */
  get #timesPasses(): boolean {
    return this.#run.update !== null || this.#trained.alone !== null;
  }

  /** Frees the model and its programs. */
  dispose(): void {
    this.#run.dispose();
    this.#trained.dispose();
    this.#device.emptyCache();
  }

  /** One pass with its communication, or a step that is one program, as the profiler sees it when it has warmed up. */
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
