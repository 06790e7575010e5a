import type { ProcessGroup, Work } from '@roofline/collectives';
import {
  type Device,
  type Tensor,
  alias,
  cast,
  copyInPlace,
  fillInPlace,
  fromTypedArray,
  keep,
  noGrad,
  scope,
  slice,
  toDevice,
  zeros,
} from '@roofline/tensor-core';
import {
  type CollectiveDType,
  type CollectiveOp,
  type Placement,
  broughtBy,
  expectedAt,
  root,
} from '../operations.ts';

/** What no rank brings, and no sum of that is. */
const nobodysValue = -1;

/** The tensors of one op on one rank. */
export class Workload {
  readonly #group: ProcessGroup;
  readonly #op: CollectiveOp;
  readonly #count: number;
  readonly #brought: Tensor;
  readonly #input: Tensor;
  readonly #output: Tensor;
  /** This rank's piece of each. */
  readonly #pieces: { readonly input: Tensor; readonly output: Tensor };

  constructor(group: ProcessGroup, device: Device, op: CollectiveOp, count: number, dtype: CollectiveDType) {
    this.#group = group;
    this.#op = op;
    this.#count = count;
    const { size } = group;
    const isWhole = (side: 'input' | 'output') =>
      side === 'input'
        ? op === 'reducescatter' || op === 'alltoall' || op === 'scatter'
        : op === 'allgather' || op === 'alltoall' || op === 'gather';
    const lengthOf = (side: 'input' | 'output') => count * (isWhole(side) ? size : 1);
    // First what may be too much: an array of JavaScript's would say so less clearly.
    [this.#input, this.#output] = scope(() => [
      keep(zeros([lengthOf('input')], { dtype, device })),
      keep(zeros([lengthOf('output')], { dtype, device })),
    ]);
    this.#pieces = scope(() => ({
      input: keep(this.#own(this.#input)),
      output: keep(this.#own(this.#output)),
    }));
    const values = Float32Array.from({ length: lengthOf('input') }, (_, i) => broughtBy(group.rank, i));
    this.#brought = scope(() => keep(cast(toDevice(fromTypedArray(values, [values.length]), device), dtype)));
  }

  /** Runs the op, on a GPU among what else is queued there. */
  run(placement: Placement): void {
    this.#group.onCurrentStream(() => this.#start(placement)).wait();
  }

  /** Runs it once on known values; gives how many of the elements that this rank gets are wrong. */
  countWrong(placement: Placement): number {
    return scope(() => {
      const { rank, size } = this.#group;
      const count = this.#count;
      const isGathered = this.#op === 'allgather' && placement === 'in-place';
      noGrad(() => {
        // A call before may have left the right values.
        fillInPlace(this.#output, nobodysValue);
        copyInPlace(isGathered ? this.#pieces.output : this.#input, this.#brought);
      });
      this.run(placement);
      const expected = expectedAt(this.#op, rank, size, count);
      if (expected === null) return 0;
      const isInInput = placement === 'in-place' && this.#op !== 'allgather';
      const held = isInInput ? this.#input : this.#output;
      const result = isInInput && this.#op === 'reducescatter' ? this.#pieces.input : held;
      const got = cast(result, 'float32').toTypedArray() as Float32Array;
      let wrong = 0;
      for (let i = 0; i < got.length; i++) if (got[i] !== expected(i)) wrong++;
      return wrong;
    });
  }

  dispose(): void {
    const { input, output } = this.#pieces;
    for (const tensor of [this.#brought, input, output, this.#input, this.#output]) tensor.dispose();
  }

  /** This rank's part of a tensor of all; the whole where it has no more. */
  #own(whole: Tensor): Tensor {
    const { rank } = this.#group;
    const count = this.#count;
    return whole.size === count ? alias(whole) : slice(whole, 0, rank * count, (rank + 1) * count);
  }

  #start(placement: Placement): Work {
    if (placement === 'out-of-place') return this.#startOn(this.#input, this.#output);
    // One rank's piece of the larger tensor.
    if (this.#op === 'allgather') return this.#startOn(this.#pieces.output, this.#output);
    if (this.#op === 'reducescatter') return this.#startOn(this.#input, this.#pieces.input);
    return this.#startOn(this.#input, this.#input);
  }

  #startOn(input: Tensor, output: Tensor): Work {
    const group = this.#group;
    const isRoot = group.rank === root;
    switch (this.#op) {
      case 'allreduce':
        return group.allReduce(input, { output });
      case 'reduce':
        return group.reduce(input, root, { output });
      case 'broadcast':
        return group.broadcast(input, root);
      case 'allgather':
        return group.allGather(output, input);
      case 'reducescatter':
        return group.reduceScatter(output, input);
      case 'alltoall':
        return group.allToAll(output, input);
      case 'gather':
        return group.gather(isRoot ? output : null, input, root);
      case 'scatter':
        return group.scatter(output, isRoot ? input : null, root);
      case 'sendrecv':
        return group.coalesce(() => {
          group.send(input, (group.rank + 1) % group.size);
          group.recv(output, (group.rank + group.size - 1) % group.size);
        });
    }
  }
}
