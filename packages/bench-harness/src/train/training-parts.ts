import {
  DistributedDataParallel,
  type FullySharded,
  type Mesh,
  ShardedOptimizer,
  fullyShard,
} from '@roofline/collectives';
import { AdamW, GradientScaler, type Schedule, clipGradientNorm } from '@roofline/optim';
import type { Device, Tensor } from '@roofline/tensor-core';
import {
  type FitOptions,
  TokenLoader,
  type TokenSource,
  TransformerLM,
  type TrainingPlace,
  deferWeights,
  loadTraining,
  loadTrainingOnRanks,
  parameterGroups,
  saveTraining,
  saveTrainingOnRanks,
} from '@roofline/transformer';
import { attentionFunction } from '../attention/attention-function.ts';
import type { TrainSettings } from './settings.ts';

type Trained = Pick<TrainingParts, 'model' | 'optimizer'> & {
  readonly parallel: DistributedDataParallel<TransformerLM> | FullySharded<TransformerLM> | null;
};

const betas = [0.9, 0.95] as const;

/** What is trained, and how far it is: of one process, or of one of several ranks. */
export class TrainingParts implements Disposable {
  readonly model: TransformerLM;
  readonly optimizer: AdamW | ShardedOptimizer<ConstructorParameters<typeof AdamW>[1] & object>;
  readonly scaler: GradientScaler;
  readonly data: TokenLoader;
  readonly #settings: TrainSettings;
  readonly #parallel: Trained['parallel'];

  /** A collective, where there is a mesh of ranks, with the axes replicate and shard. */
  constructor(settings: TrainSettings, source: TokenSource, device: Device, mesh: Mesh | null) {
    const { context: contextLength, seed, dtype, batch, validation: validationShare } = settings;
    this.#settings = settings;
    const { model, optimizer, parallel } = trainedBy(settings, device, mesh);
    [this.model, this.optimizer, this.#parallel] = [model, optimizer, parallel];
    this.scaler = new GradientScaler({ enabled: dtype === 'float16', ...ranksOf(parallel) });
    const ranks = mesh ? { rank: mesh.group.rank, ranks: mesh.group.size } : {};
    this.data = new TokenLoader(source, { batch, contextLength, seed, validationShare, device, ...ranks });
  }

  fitOptions(schedule: Schedule): Omit<FitOptions, 'from' | 'steps'> {
    const { accumulate, dtype, execution, clip } = this.#settings;
    const { optimizer, scaler, data } = this;
    const ranks = ranksOf(this.#parallel);
    return {
      ...{ data, optimizer, scaler, schedule, accumulate, dtype },
      ...(this.#parallel && { parallel: this.#parallel }),
      // Without a limit the norm is still measured: it shows a training that goes wrong.
      clip: (parameters: Iterable<Tensor>) => clipGradientNorm(parameters, clip || Infinity, ranks),
      compile: execution !== 'eager' && { autotune: execution === 'autotuned' },
    };
  }

  /** The file is the same whether one process writes it or rank 0 of several. A collective. */
  async save(path: string, place: TrainingPlace): Promise<void> {
    const { model, optimizer, scaler, data } = this;
    if (this.#parallel)
      await saveTrainingOnRanks(path, { model, optimizer, scaler, data, parallel: this.#parallel }, place);
    else saveTraining(path, { model, optimizer: optimizer as AdamW, scaler, data }, place);
  }

  /** A collective. */
  async load(path: string): Promise<void> {
    const { model, optimizer, scaler, data } = this;
    if (this.#parallel)
      await loadTrainingOnRanks(path, { model, optimizer, scaler, data, parallel: this.#parallel });
    else loadTraining(path, { model, optimizer: optimizer as AdamW, scaler, data });
  }

  [Symbol.dispose](): void {
    for (const part of [this.data, this.scaler, this.optimizer]) part.dispose();
    this.#parallel?.dispose();
    this.model.dispose();
  }
}

function trainedBy(settings: TrainSettings, device: Device, mesh: Mesh | null): Trained {
  const { model: named, context, seed, weightDecay, dtype, mode } = settings;
  const attention = attentionFunction(settings.attention);
  const config = { ...named.shape, contextLength: context };
  const build = () => new TransformerLM(config, { device, seed, attention });
  if (mesh && (mode === 'fsdp' || mode === 'hybrid')) {
    const model = deferWeights(build);
    const parallel = fullyShard(model, mesh, { computeDtype: dtype });
    const groups = parameterGroups(model, { weightDecay, parts: parallel.parts() });
    return { model, parallel, optimizer: new AdamW(groups, { betas: [...betas] }) };
  }
  const model = build();
  const groups = parameterGroups(model, { weightDecay });
  const parallel = mesh && new DistributedDataParallel(model, mesh.group);
  const optimizer =
    mesh && mode === 'zero1'
      ? new ShardedOptimizer(groups, AdamW, mesh.group, { betas: [...betas] })
      : new AdamW(groups, { betas: [...betas] });
  return { model, parallel, optimizer };
}

/** The ranks that have other gradients than this one. */
function ranksOf(parallel: Trained['parallel']) {
  return parallel && 'ranks' in parallel ? { ranks: parallel.ranks } : {};
}
