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
import { type DdpCell, type DdpSettings, isOneProgram } from './parameters.ts';
import { profilePass } from './profile-pass.ts';
import type { RankModel } from './rank-model.ts';
import type { ProfiledPass, RankResult } from './result.ts';

type Times = RankResult['times'];

/** Each of a rank's times, of one step: 0 for those that `hasTimes` has not. */
export type StepSample = { readonly [Name in keyof Times]: number };

interface Runs {
  /** Forward and backward. */
  readonly pass: () => void;
  readonly update: () => void;
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
    const generator = new Generator(seed + 1 + group.rank);
    const tokens = () =>
      keep(
        randint(0, config.vocabularySize, [cell.batch, cell.context], { generator, device, dtype: 'int64' }),
      );
    [this.#ids, this.#targets] = [tokens(), tokens()];
    this.#run = this.#runsOf(cell);
    this.parameterCount = countParameters(config);
  }

  #runsOf({ execution, memoryBudget }: DdpCell): Runs {
    const { optimizer } = this.#trained;
    const runs: Runs = {
      pass: () => this.#backward(),
      update: () => optimizer.step(),
      step: () => {
        this.#backward();
        optimizer.step();
        optimizer.zeroGrad();
      },
      dispose() {},
    };
    if (execution === 'eager') return runs;
    const options = { autotune: execution === 'autotuned' };
    const [pass, update] = [runs.pass, runs.update].map((run) => compile(run, options));
    const budget = memoryBudget === noBudget ? {} : { memoryBudget };
    const step = compile(runs.step, { ...options, ...budget });
    return {
      ...{ pass: pass!, update: update!, step },
      dispose: () => [pass, update, step].forEach((run) => run!.dispose()),
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
    this.#step();
    // A program that is traced replays from the next call on; one that has found a new order of gathers from the one after.
    if (this.#cell.execution !== 'eager') for (let i = 0; i < 2; i++) this.#step();
    this.#device.synchronize();
    const coldStartMs = performance.now();
    this.#device.resetPeakMemory();
    this.#step();
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

  /** Each of the times once, all ranks beginning together; `localMs` is 0 where there is no pass without communication. */
  sample(): StepSample {
    const { optimizer, alone } = this.#trained;
    if (this.#isOneProgram) return { localMs: 0, synchronizedMs: 0, optimizerMs: 0, ...this.#wholeStep() };
    const localMs = alone ? this.#time(() => alone(() => this.#pass())) : 0;
    optimizer.zeroGrad();
    const synchronizedMs = this.#time(() => this.#pass());
    const optimizerMs = this.#time(() => this.#run.update());
    optimizer.zeroGrad();
    return { localMs, synchronizedMs, optimizerMs, ...this.#wholeStep() };
  }

  #wholeStep(): Pick<StepSample, 'stepMs' | 'communicationMs'> {
    const stepMs = this.#time(() => this.#step());
    const communicationMs = scope(() => this.#time(this.#trained.communication()));
    return { stepMs, communicationMs };
  }

  /** Those of the times that there are. */
  timesOf(measured: { readonly [Name in keyof Times]: NonNullable<Times[Name]> }): Times {
    const { localMs, synchronizedMs, optimizerMs } = measured;
    const parts = this.#isOneProgram
      ? { synchronizedMs: null, optimizerMs: null }
      : { synchronizedMs, optimizerMs };
    return { ...measured, localMs: this.#trained.alone ? localMs : null, ...parts };
  }

  get #isOneProgram(): boolean {
    return isOneProgram(this.#cell);
  }

  /** Frees the model and its programs. */
  dispose(): void {
    this.#run.dispose();
    this.#trained.dispose();
    this.#device.emptyCache();
  }

  #step(): void {
    this.#trained.beginPass();
    this.#run.step();
  }

  /** One pass with its communication, or a step that is one program, as the profiler sees it when it has warmed up. */
  async profile(): Promise<ProfiledPass> {
    const passes: ProfiledPass[] = [];
    for (const _ of ['warm-up', 'counts']) {
      this.#device.synchronize();
      this.#group.barrier().wait();
      passes.push(await profilePass(() => (this.#isOneProgram ? this.#step() : this.#pass())));
      this.#trained.optimizer.zeroGrad();
    }
    return passes.at(-1)!;
  }

  #pass(): void {
    this.#trained.beginPass();
    this.#run.pass();
    // On the CPU a program leaves the last reductions to whoever asks for their memory.
    if (this.#cell.execution !== 'eager') for (const { grad } of this.#trained.leaves()) void grad?.address;
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
