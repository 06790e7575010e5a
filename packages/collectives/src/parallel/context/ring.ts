import type { Tensor } from '@roofline/tensor-core';
import type { ProcessGroup } from '../../group/process-group.ts';
import { shift } from '../../ops/shift.ts';

/** A step of a ring, in which a rank has what belongs to another. */
interface RingStep {
  /** Whether that rank's first chunk comes before this one's; its second then comes after. */
  readonly isEarlier: boolean;
  readonly isLast: boolean;
}

/** Ranks that pass tensors on to the next one. */
export class Ring {
  readonly #group: ProcessGroup;

  constructor(group: ProcessGroup) {
    this.#group = group;
  }

  /** The steps after that with what is this rank's own: what comes is of the rank before, then of the one before that. */
  steps(): RingStep[] {
    const { rank, size } = this.#group;
    return Array.from({ length: size - 1 }, (_, i) => ({
      isEarlier: i < rank,
      isLast: i === size - 2,
    }));
  }

  /** Begins to send `x` to the next rank, and gives what comes from the one before; its first reader waits for it. */
  pass(x: Tensor): Tensor {
    return shift(x, 1, this.#group);
  }
}
