import type { Tensor } from '@roofline/tensor-core';
import { OptimizerStateError } from './optimizer-state.ts';

/** The number of steps that parameters have made together. It is one for all, so that a step is counted at once. */
export class StepCount {
  made: number;
  /** The parameters that it counts for. Some may leave it for a count of their own; none comes to it later. */
  members: number;

  constructor(made: number, members = 1) {
    this.made = made;
    this.members = members;
  }
}

/** What a parameter's steps are counted by: the host, or the device alone. */
interface Counted {
  steps: StepCount | Tensor;
}

/** A count, and how many parameters it counted for when they were asked to make their steps together. */
export interface SharedCount {
  readonly count: StepCount;
  readonly members: number;
}

/** Whether it still counts for all of them. */
export function isWhole({ count, members }: SharedCount): boolean {
  return count.members === members;
}

/** Whether all are as many. */
export function areEqual([first, ...others]: readonly SharedCount[]): boolean {
  return others.every(({ count }) => count.made === first!.count.made);
}

/** One count for parameters that have made as many steps as each other. */
export function shareCount(moments: readonly Counted[]): SharedCount {
  const { length: members } = moments;
  const { steps: first } = moments[0]!;
  const counts = moments.map(({ steps }) => steps).filter((steps) => steps instanceof StepCount);
  if (counts.length < members || counts.some(({ made }) => made !== counts[0]!.made)) {
    throw new OptimizerStateError(
      'AdamW: the parameters of a compiled step no longer have one number of steps, because steps were made for some of them, ' +
        'or by a gradient scaler, in between; compile the step anew.',
    );
  }
  const [count] = counts as [StepCount, ...StepCount[]];
  if (count.members === members && counts.every((other) => other === first)) return { count, members };
  const shared = new StepCount(count.made, members);
  for (const moment of moments) {
    (moment.steps as StepCount).members--;
    moment.steps = shared;
  }
  return { count: shared, members };
}
