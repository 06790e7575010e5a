import {
  type ComputeOp,
  type DType,
  type Device,
  type Shape,
  type Tensor,
  applyOne,
  byteSize,
  formatShape,
  noGrad,
  observeOps,
  sizeOf,
  zeros,
} from '@roofline/tensor-core';
import { Mesh, type ProcessGroup, fullyShard, parallelize } from '@roofline/collectives';
import { AdamW } from '@roofline/optim';
import { deferWeights } from '@roofline/transformer';
import { type DdpCell, type DdpSettings, tensorRanksOf } from './parameters.ts';
import { type RankModel, builderOf, waitFor } from './rank-model.ts';

/** A collective as the first step made it, to be made again. */
interface SeenCall {
  readonly op: ComputeOp<never>;
  readonly attributes: unknown;
  readonly shape: Shape;
  readonly dtype: DType;
  /** Of its input or its output, whichever has more. */
  readonly bytes: number;
}

const collectives = new Set(['allReduce', 'allGather', 'reduceScatter']);

/** A model whose layers are divided over ranks and, in the mode `fsdp-tensor`, sharded over the others. A collective. */
export async function dividedModelOf(
  cell: DdpCell,
  settings: DdpSettings,
  device: Device,
  group: ProcessGroup,
): Promise<RankModel> {
  const tensor = tensorRanksOf(cell);
  const mesh = await Mesh.create(group, { shard: cell.worldSize / tensor, tensor });
  const model = deferWeights(builderOf(cell, settings, device));
  const divided = parallelize(model, mesh);
  const isSharded = cell.mode === 'fsdp-tensor';
  const sharded = isSharded && fullyShard(model, mesh.along('shard'), { computeDtype: cell.dtype });
  const calls = new FirstPass();
  const optimizer = new AdamW((sharded || divided).parameters());
  return {
    model,
    optimizer,
    dispose() {
      optimizer.dispose();
      if (sharded) sharded.dispose();
      divided.dispose();
      mesh.dispose();
    },
    get bucketBytes() {
      return calls.seen.map(({ bytes }) => bytes);
    },
    copiedBytes: 0,
    alone: null,
    beginPass: () => calls.beginPass(),
    communication() {
      // One input of each kind: those of all calls would take what a step's activations take.
      const kindOf = ({ shape, dtype }: Pick<SeenCall, 'shape' | 'dtype'>) =>
        `${dtype} ${formatShape(shape)}`;
      const kinds = new Map(calls.seen.map((call) => [kindOf(call), call]));
      const inputs = new Map(
        [...kinds].map(([kind, { shape, dtype }]) => [kind, zeros(shape, { device, dtype })]),
      );
      return () =>
        noGrad(() => {
          for (const call of calls.seen)
            waitFor(applyOne(call.op, [inputs.get(kindOf(call))!], call.attributes as never));
        });
    },
  };
}

/** The collectives between the beginnings of the first and the second pass. */
class FirstPass {
  readonly seen: SeenCall[] = [];
  #passes = 0;
  #stop: () => void = () => {};

  beginPass(): void {
    this.#passes++;
    if (this.#passes === 1) this.#stop = observeOps({ before: (...call) => this.#note(...call) });
    else if (this.#passes === 2) this.#stop();
  }

  #note(
    op: ComputeOp<never>,
    [input]: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    if (!collectives.has(op.name)) return;
    const { shape, dtype } = input!;
    const elements = Math.max(sizeOf(shape), ...outputs.map(({ size }) => size));
    this.seen.push({ op, attributes, shape, dtype, bytes: elements * byteSize(dtype) });
  }
}
