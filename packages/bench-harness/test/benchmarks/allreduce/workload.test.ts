import type { ProcessGroup } from '@roofline/collectives';
import { type Tensor, copyInPlace, device, fromTypedArray, scope } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import {
  type CollectiveOp,
  collectiveOps,
  expectedAt,
  factsOf,
} from '../../../src/benchmarks/allreduce/operations.ts';
import { Workload } from '../../../src/benchmarks/allreduce/ranks/workload.ts';

const size = 2;
const count = 6;

/** What a call does with the tensor that it is to fill. */
type Filling = 'right' | 'one element off' | 'left as it is';

/** A group that moves nothing: it fills results by itself, as `filling` says. */
class Pretender {
  readonly size = size;
  readonly rank: number;
  filling: Filling = 'right';
  readonly #op: CollectiveOp;

  constructor(op: CollectiveOp) {
    this.#op = op;
    // One that gets a result which it does not bring.
    this.rank = op === 'reduce' || op === 'gather' ? 0 : 1;
  }

  readonly onCurrentStream = <T>(calls: () => T): T => calls();
  readonly coalesce = (calls: () => void) => (calls(), this.#work());
  readonly send = () => this.#work();
  readonly recv = (output: Tensor) => this.#fill(output);
  readonly broadcast = (x: Tensor) => this.#fill(x);
  readonly allReduce = (_: Tensor, { output }: { output: Tensor }) => this.#fill(output);
  readonly reduce = (_: Tensor, _root: number, { output }: { output: Tensor }) => this.#fill(output);
  readonly allGather = (output: Tensor) => this.#fill(output);
  readonly reduceScatter = (output: Tensor) => this.#fill(output);
  readonly allToAll = (output: Tensor) => this.#fill(output);
  readonly gather = (output: Tensor) => this.#fill(output);
  readonly scatter = (output: Tensor) => this.#fill(output);

  #fill(output: Tensor) {
    if (this.filling !== 'left as it is') {
      const expected = expectedAt(this.#op, this.rank, size, count)!;
      const values = Float32Array.from({ length: output.size }, (_, i) => expected(i));
      if (this.filling === 'one element off') values[output.size - 1]! += 1;
      scope(() => void copyInPlace(output, fromTypedArray(values, output.shape)));
    }
    return this.#work();
  }

  #work() {
    return { wait: () => {} };
  }
}

describe('#wrong counts what a call gets wrong', () => {
  it.each(collectiveOps)('%s', (op) => {
    const pretender = new Pretender(op);
    const group = pretender as unknown as ProcessGroup;
    const workload = new Workload(group, device('cpu'), op, count, 'float32');
    const { placements } = factsOf[op];
    const countAll = (filling: Filling) => {
      pretender.filling = filling;
      return placements.map((placement) => workload.countWrong(placement));
    };
    expect(countAll('right')).toEqual(placements.map(() => 0));
    // Also where a call before has left the right values there.
    for (const wrong of countAll('left as it is')) expect(wrong).toBeGreaterThan(0);
    expect(countAll('one element off')).toEqual(placements.map(() => 1));
    workload.dispose();
  });
});
