import {
  DTypeError,
  RooflineError,
  ShapeError,
  type Tensor,
  checkCount,
  checkFlag,
  checkOptions,
  describeValue,
  formatShape,
  requireTensors,
} from '@roofline/tensor-core';
import { collectiveDTypes, repeatsElements } from '../group/operands.ts';
import type { NamedTensor } from './check-agreement.ts';

/** What is trained: a Module of @roofline/transformer, or anything else that names its parameters. */
export interface ReplicatedModel {
  namedParameters(): Iterable<NamedTensor>;
}

/** When gradients are reduced. */
const dataParallelModes = ['naive', 'flat', 'overlap'] as const;
/** `naive`: one by one after the backward pass; `flat`: all at once after it; `overlap`: bucket by bucket during it. */
export type DataParallelMode = (typeof dataParallelModes)[number];

/** Options of DistributedDataParallel; all ranks give the same. */
export interface DistributedDataParallelOptions {
  /** Default 'overlap'. */
  readonly mode?: DataParallelMode;
  /**
   * When a bucket of 'overlap' is full. Default 25 MiB, or 1/64 of all gradients where that is more: each call waits for a place on the
   * GPU, and only what the last one sends is not hidden. The first one is full with 1 MiB.
   */
  readonly bucketBytes?: number;
  /**
   * Whether the backward pass may leave parameters out: zeros are then reduced in place of their gradients, and those
   * that no rank has used keep none. Default false: they are an error that names them.
   */
  readonly findUnusedParameters?: boolean;
}

/** What errors name. */
export const owner = 'DistributedDataParallel';
const leastBucketBytes = 25 * 2 ** 20;
const mostBuckets = 64;

/** The options with their defaults for these parameters. Throws a RooflineError for what they are not. */
export function checkedOptions(
  options: DistributedDataParallelOptions,
  trained: readonly Tensor[],
): Required<DistributedDataParallelOptions> {
  checkOptions(owner, options, ['mode', 'bucketBytes', 'findUnusedParameters']);
  const gradientBytes = trained.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const {
    mode = 'overlap',
    bucketBytes = defaultBucketBytes(gradientBytes),
    findUnusedParameters = false,
  } = options;
  if (!dataParallelModes.includes(mode))
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: there is no mode ${describeValue(mode)}; take ${dataParallelModes.join(', ')}.`,
    );
  checkCount(owner, 'bucketBytes', bucketBytes, 1);
  checkFlag(owner, 'findUnusedParameters', findUnusedParameters);
  return { mode, bucketBytes, findUnusedParameters };
}

/**
 * The bytes of a bucket of DistributedDataParallel where none are given, for gradients of so many bytes in all. Throws a
 * RooflineError (code RANGE) for what is not a whole number of zero or more.
 */
export function defaultBucketBytes(gradientBytes: number): number {
  checkCount('defaultBucketBytes', 'gradientBytes', gradientBytes, 0);
  return Math.max(leastBucketBytes, Math.ceil(gradientBytes / mostBuckets));
}

/**
 * A model's tensors, each once. Throws a RooflineError for what is not a model, or has tensors that cannot be trained.
 */
export function namedTensors(model: ReplicatedModel): NamedTensor[] {
  if (typeof model?.namedParameters !== 'function')
    throw new RooflineError(
      'ARGUMENT',
      `${owner}: takes a model with namedParameters(), not ${describeValue(model)}.`,
    );
  const named = [...model.namedParameters()];
  requireTensors(
    owner,
    named.map(([, tensor]) => tensor),
  );
  const seen = new Set<Tensor>();
  for (const [name, tensor] of named) {
    tensor.assertAlive(`${owner}: "${name}"`);
    if (!tensor.isLeaf)
      throw new RooflineError(
        'PARAMETERS',
        `${owner}: "${name}" was made by an op; only leaves are trained.`,
      );
    checkReplicable(name, tensor);
  }
  return named.filter(([, tensor]) => !seen.has(tensor) && seen.add(tensor));
}

/** Throws, on all ranks, for what those after the first cannot get. */
function checkReplicable(name: string, tensor: Tensor): void {
  const { dtype, shape } = tensor;
  const remedy = 'or keep it where namedParameters() does not give it, such as in a private field';
  if (!(collectiveDTypes as readonly string[]).includes(dtype))
    throw new DTypeError(`${owner}: "${name}" is ${dtype}, which does not travel; cast() it, ${remedy}.`);
  if (repeatsElements(tensor))
    throw new ShapeError(
      `${owner}: several elements of "${name}" ${formatShape(shape)} lie at one place, as after expand(); make it ` +
        `contiguous(), ${remedy}.`,
    );
}
