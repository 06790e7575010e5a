import {
  RooflineError,
  type RepeatableCall,
  type Tensor,
  checkpoint,
  describeValue,
  selectiveCheckpoint,
} from '@roofline/tensor-core';

/** The policies of recomputation that have a name; a number of blocks is one, too. */
export const recomputePolicies = ['none', 'block', 'attention-kept', 'recursive'] as const;

/**
 * What a model's backward pass makes again, so that the forward pass need not keep it; gradients are the same bits.
 *
 * - `none`: nothing. All blocks' activations are kept.
 * - `block`: each block, of which only the input is kept. One more forward pass of the blocks.
 * - a number: as many blocks together, so that fewer inputs are kept and more activations made again at a time. With n blocks, √n
 *   keep the least (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost").
 * - `attention-kept`: each block but its attention, whose output (and log-sum-exp) is small and dear. Of `flashAttention`,
 *   `plainAttention` and what `contextParallel` of @roofline/collectives attends with.
 * - `recursive`: halves of halves (section 4.3 of that paper): log₂ n inputs are kept, and each block is made again up to log₂ n times.
 */
export type RecomputePolicy = (typeof recomputePolicies)[number] | number;

type Block = (x: Tensor) => Tensor;

/** Throws a RooflineError (code OPTION), which names `owner`, for what is no policy. */
export function checkRecompute(owner: string, policy: RecomputePolicy): void {
  const isKnown =
    typeof policy === 'number'
      ? Number.isSafeInteger(policy) && policy > 0
      : recomputePolicies.includes(policy);
  if (isKnown) return;
  throw new RooflineError(
    'OPTION',
    `${owner}: recompute must be ${recomputePolicies.join(', ')} or a whole number of blocks, not ${describeValue(policy)}.`,
  );
}

/**
 * Runs blocks one after the other, of which the backward pass makes again what the policy says. Disposes of `x`: without a tape
 * nothing else holds it, or what a block gives to the next one, and waiting for a scope's end would keep one for each block.
 */
export function runBlocks(blocks: readonly Block[], x: Tensor, policy: RecomputePolicy): Tensor {
  if (policy === 'none') return blocks.reduce(passedOn, x);
  if (policy === 'recursive') return passedOn(x, (input) => recursively(blocks, input));
  const size = typeof policy === 'number' ? policy : 1;
  const groups = Array.from({ length: Math.ceil(blocks.length / size) }, (_, i) =>
    blocks.slice(i * size, (i + 1) * size),
  );
  const repeated = policy === 'attention-kept' ? keepingAttention : checkpoint;
  return groups.reduce(
    (before, group) => passedOn(before, (input) => repeatedIfNeeded(repeated, group, input)),
    x,
  );
}

/** Disposes of what blocks give, but for the last one's, and not of `x`. */
function inTurn(blocks: readonly Block[], x: Tensor): Tensor {
  return blocks.slice(1).reduce((before, block) => passedOn(before, block), blocks[0]!(x));
}

function passedOn(before: Tensor, block: Block): Tensor {
  const after = block(before);
  before.dispose();
  return after;
}

type Checkpoint = (fn: Block, x: Tensor) => Tensor;

/** A checkpoint of blocks, or the blocks as they are: a checkpoint would leave parameters without gradients if its input needs none. */
function repeatedIfNeeded(repeated: Checkpoint, blocks: readonly Block[], x: Tensor): Tensor {
  return x.requiresGrad ? repeated((input) => inTurn(blocks, input), x) : inTurn(blocks, x);
}

/** The first half as a checkpoint, which in its backward pass is halved again; then the second, halved as well. */
function recursively(blocks: readonly Block[], x: Tensor): Tensor {
  if (blocks.length === 1) return blocks[0]!(x);
  const half = Math.ceil(blocks.length / 2);
  const first = (input: Tensor) => recursively(blocks.slice(0, half), input);
  const middle = x.requiresGrad ? checkpoint(first, x) : first(x);
  return passedOn(middle, (input) => recursively(blocks.slice(half), input));
}

/** `plainAttention` names its second product so. */
const valuesRange = 'attention.values';

function isAttention({ op, range }: RepeatableCall): boolean {
  const isWhole = op === 'flashAttention' || op === 'ringAttention';
  return isWhole || (op === 'matmul' && range.at(-1) === valuesRange);
}

function keepingAttention(fn: Block, x: Tensor): Tensor {
  let kept = 0;
  const output = selectiveCheckpoint((call) => isAttention(call) && ++kept > 0, fn, x);
  if (kept > 0) return output;
  output.dispose();
  throw new RooflineError(
    'OPTION',
    "TransformerLM: recompute 'attention-kept' finds no attention whose output it could keep: it knows flashAttention, " +
      "plainAttention and contextParallel()'s; take 'block'.",
  );
}
