import {
  RooflineError,
  ShapeError,
  type Tensor,
  arange,
  autocastDType,
  cast,
  checkOptions,
  concat,
  describeValue,
  formatShape,
  fromTypedArray,
  noGrad,
  requireTensor,
  scope,
  slice,
} from '@roofline/tensor-core';
import { CollectiveError } from '../../errors.ts';
import type { ProcessGroup } from '../../group/process-group.ts';
import { allGather } from '../../ops/gather-scatter.ts';
import { type Mesh, groupAlong } from '../mesh.ts';
import type { DividableModel } from '../tensor/dividable-model.ts';
import { type AttentionParts, plainAttentionParts } from './attention-parts.ts';
import { contextLoss } from './context-loss.ts';
import { ringAttention } from './ring-attention.ts';

/** A language model as TransformerLM of @roofline/transformer is one. */
export interface ContextModel extends DividableModel {
  readonly config: DividableModel['config'] & {
    readonly contextLength: number;
    readonly slidingWindow?: number;
  };
}

/** Options of `contextParallel`. */
export interface ContextParallelOptions {
  /** What attends: `flashAttentionParts` of @roofline/flash-attn, or, by default, separate ops whose scores are in memory. */
  readonly parts?: AttentionParts;
}

const owner = 'contextParallel';

/** Sequences that are divided over ranks: made by `contextParallel`. */
export class ContextParallel {
  /** The ranks that have a sequence together. */
  readonly group: ProcessGroup;
  readonly #parts: AttentionParts;
  readonly #agreed = new Set<string>();
  /** Calls of `attention`. */
  #calls = 0;

  /** Made by `contextParallel`. */
  constructor(group: ProcessGroup, parts: AttentionParts) {
    this.group = group;
    this.#parts = parts;
  }

  /**
   * Causal attention over the whole sequence for the queries of this rank's tokens: what the model is built with. q [B, H, T / n, d], k and
   * v [B, K, T / n, d]. A collective, forward and backward. Throws a ShapeError for lengths that differ, or are odd.
   */
  readonly attention = (
    q: Tensor,
    k: Tensor,
    v: Tensor,
    { causal, scale }: { readonly causal: boolean; readonly scale: number },
  ): Tensor => {
    if (!causal || q.shape[2] !== k.shape[2])
      throw new ShapeError(
        `${owner}: attention is causal, of as many queries as keys on each rank, not q ${formatShape(q.shape)} and k ` +
          `${formatShape(k.shape)}.`,
      );
    checkEven(q.shape[2]!);
    this.#calls++;
    const lower = autocastDType();
    const lowered = (x: Tensor) => (lower !== null && x.dtype === 'float32' ? cast(x, lower) : x);
    return scope(() => ringAttention(this.group, this.#parts, scale)(lowered(q), lowered(k), lowered(v)));
  };

  /**
   * Has a model that was built with `attention` take this rank's tokens in the place of whole sequences, in place: their positions are
   * those in the sequence, and the mean of all ranks' `languageModelLoss` is the mean over all tokens that count. Data parallelism or
   * `fullyShard` over these ranks, or over these and others, then averages the gradients. Throws a RooflineError for what is
   * not a TransformerLM, has its layers divided, or a sliding window shorter than its context.
   */
  divide(model: ContextModel): void {
    if (model?.layers === undefined || model.lmHead === undefined || model.config === undefined)
      throw new RooflineError('ARGUMENT', `${owner}: takes a TransformerLM, not ${describeValue(model)}.`);
    if (model.headLoss !== null)
      throw new RooflineError(
        'PARAMETERS',
        `${owner}: the model has a loss of its own, as parallelize() gives one and a second call would; divide one that is whole.`,
      );
    const { contextLength, slidingWindow = contextLength } = model.config;
    if (slidingWindow < contextLength)
      throw new RooflineError(
        'OPTION',
        `${owner}: a sliding window of ${slidingWindow} is shorter than the context of ${contextLength}, and the ring knows none; train ` +
          'whole sequences, or build the model without slidingWindow.',
      );
    type Wrappable = {
      wrap(around: (run: (...inputs: unknown[]) => unknown, ...inputs: unknown[]) => unknown): void;
    };
    for (const { attn } of model.layers)
      (attn as Wrappable).wrap((attend, x, cache) => this.#attend(attend, x as Tensor, cache, contextLength));
    (model.positionEmbeddings as Wrappable | null)?.wrap((rows, length) =>
      rows(length, this.#positionsOf(length as number, contextLength, model.lmHead.weight)),
    );
    model.headLoss = contextLoss(model, this.group);
  }

  #attend(
    attend: (...inputs: unknown[]) => unknown,
    x: Tensor,
    cache: unknown,
    contextLength: number,
  ): unknown {
    if (cache !== undefined)
      throw new RooflineError(
        'ARGUMENT',
        `${owner}: a sequence that is divided has no cache; generate with a model that is not, from the same weights.`,
      );
    const calls = this.#calls;
    const position = this.#positionsOf(x.shape[1]!, contextLength, x);
    const output = attend(x, {
      position,
      append: (keys: Tensor, values: Tensor) => ({ keys, values }),
    });
    if (this.#calls > calls) return output;
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: the model attends to this rank's tokens alone; build it with { attention: context.attention }.`,
    );
  }

  /** The positions of this rank's tokens, of which there are so many: int32 [length]. */
  #positionsOf(length: number, contextLength: number, { device }: Tensor): Tensor {
    const { rank, size } = this.group;
    checkEven(length);
    if (length * size > contextLength)
      throw new ShapeError(
        `${owner}: ${length} tokens on each of ${size} ranks are a sequence of ${length * size}, longer than the context of ${contextLength}; ` +
          'shorten it, or build the model with a larger contextLength.',
      );
    const chunk = length / 2;
    const from = (place: number) => arange(place * chunk, (place + 1) * chunk, 1, { dtype: 'int32', device });
    return scope(() => concat([from(rank), from(2 * size - 1 - rank)], 0));
  }

  /**
   * This rank's tokens [B, T / n] of sequences [B, T], ids or targets, which all ranks have alike: of 2 n chunks the one with the rank's
   * number, and the one as far from the end. The lengths are compared: on the CPU in each call, on a GPU, whose host would wait, the
   * first time that there is a length, so call it outside of compiled functions. A collective. Throws a ShapeError for a
   * length that is not a multiple of 2 n, and a CollectiveError, on all ranks, where they differ.
   */
  shardOf(sequences: Tensor): Tensor {
    requireTensor(`${owner}: shardOf`, sequences);
    const { rank, size } = this.group;
    const { shape } = sequences;
    const isWhole = shape.length === 2 && shape[1]! % (2 * size) === 0;
    this.#agree(sequences);
    if (!isWhole)
      throw new ShapeError(
        `${owner}: sequences ${formatShape(shape)} must be [batch, tokens], of a multiple of ${2 * size} tokens for ${size} ranks, of ` +
          'which each gets two chunks; cut them, or fill them up with targets of -100.',
      );
    const chunk = shape[1]! / (2 * size);
    const at = (place: number) => slice(sequences, 1, place * chunk, (place + 1) * chunk);
    return scope(() => concat([at(rank), at(2 * size - 1 - rank)], 1));
  }

  #agree({ shape, device }: Tensor): void {
    const key = shape.join();
    if (device.type === 'cuda' && this.#agreed.has(key)) return;
    const { rank, ranks } = this.group;
    const own = Int32Array.from([shape[0] ?? 1, shape[1] ?? 1]);
    const all = noGrad(() =>
      scope(() => allGather(fromTypedArray(own, [1, 2], { device }), this.group).toFlatArray()),
    );
    const shapeOf = (member: number) => `[${all.slice(2 * member, 2 * member + 2).join(', ')}]`;
    const peers = ranks.filter((_, member) => shapeOf(member) !== shapeOf(rank));
    if (peers.length > 0)
      throw new CollectiveError(
        `${owner}: the sequences of ranks differ: ${ranks.map((each, i) => `rank ${each} has ${shapeOf(i)}`).join(', ')}; give all ` +
          'ranks of a context the same ones, cut or filled up to one length.',
        { op: owner, rank: ranks[rank]!, peers },
      );
    this.#agreed.add(key);
  }
}

/**
 * Divides sequences over the ranks of a group, or along the axis `context` of a mesh (context parallelism): each rank has T / n tokens
 * of each layer's activations, and attention goes around the ranks as a ring (see `ringAttention`).
 *
 *     const context = contextParallel(group, { parts: flashAttentionParts });
 *     const model = new TransformerLM(config, { device, attention: context.attention });
 *     context.divide(model);
 *     const sharded = fullyShard(model, group, { computeDtype: 'bfloat16' });
 *     languageModelLoss(model, context.shardOf(ids), context.shardOf(targets)).backward();
 *
 * Throws a RooflineError for what is no group, and for a mesh without the axis.
 */
export function contextParallel(
  mesh: Mesh | ProcessGroup,
  options: ContextParallelOptions = {},
): ContextParallel {
  checkOptions(owner, options, ['parts']);
  const { parts = plainAttentionParts } = options;
  if (typeof parts?.forward !== 'function' || typeof parts.backward !== 'function')
    throw new RooflineError(
      'OPTION',
      `${owner}: parts must have forward and backward, as flashAttentionParts, not ${describeValue(parts)}.`,
    );
  return new ContextParallel(groupAlong(owner, mesh, 'context'), parts);
}

function checkEven(length: number): void {
  if (length % 2 === 0) return;
  throw new ShapeError(
    `${owner}: ${length} tokens of a rank are not two chunks; divide sequences by shardOf().`,
  );
}
