import type { ProcessGroup } from '@roofline/collectives';
import { type Device, type Tensor, autocast, compile, full, noGrad, scope } from '@roofline/tensor-core';
import {
  TokenLoader,
  type TokenLoaderState,
  type TokenSource,
  type TransformerLM,
  languageModelLoss,
} from '@roofline/transformer';
import type { TrainSettings } from './settings.ts';

/** The loss on the validation split: on the same windows each time, of which each rank has its rows, so that any two can be compared. */
export class Evaluation implements Disposable {
  readonly #device: Device;
  readonly #group: ProcessGroup | null;
  readonly #loader: TokenLoader;
  readonly #start: TokenLoaderState;
  readonly #batches: number;
  readonly #loss: ((ids: Tensor, targets: Tensor) => Tensor) & { dispose?(): void };

  constructor(
    model: TransformerLM,
    source: TokenSource,
    settings: TrainSettings,
    device: Device,
    group: ProcessGroup | null,
  ) {
    [this.#device, this.#group] = [device, group];
    const { batch, accumulate, context: contextLength, seed, validation: validationShare } = settings;
    const split = 'validation';
    const options = {
      batch: batch / accumulate,
      contextLength,
      seed,
      split,
      validationShare,
      device,
      ...(group && { rank: group.rank, ranks: group.size }),
    } as const;
    this.#loader = new TokenLoader(source, options);
    this.#start = this.#loader.state();
    this.#batches = settings.evalBatches;
    const { dtype } = settings;
    const loss = (ids: Tensor, targets: Tensor) =>
      noGrad(() => {
        const forward = () => languageModelLoss(model, ids, targets);
        return dtype === 'float32' ? forward() : autocast(dtype, forward);
      });
    this.#loss = settings.execution === 'eager' ? loss : compile(loss);
  }

  /** The mean loss, in nats. A collective. */
  run(): number {
    this.#loader.load(this.#start);
    const losses = Array.from({ length: this.#batches }, () =>
      scope(() => {
        const { ids, targets } = this.#loader.next();
        return this.#loss(ids, targets).item();
      }),
    );
    return this.#ofAllRanks(losses.reduce((sum, loss) => sum + loss, 0) / losses.length);
  }

  #ofAllRanks(loss: number): number {
    if (this.#group === null) return loss;
    return scope(() => {
      const mean = full([1], loss, { device: this.#device });
      this.#group!.allReduce(mean, { op: 'average' }).wait();
      return mean.item();
    });
  }

  [Symbol.dispose](): void {
    this.#loss.dispose?.();
    this.#loader.dispose();
  }
}
