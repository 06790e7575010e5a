import { costOf } from '../../../../op/cost.ts';
import type { Call } from '../../../../program/program.ts';
import { byteSize } from '../../../../tensor/dtype.ts';

// Rates of an H200, where only their ratios matter: of memory, and of products in 16 bits and in more.
const bytesPerUs = 3.5e6;
const lowFlopsPerUs = 6e8;
const flopsPerUs = 1.5e8;
/** What a kernel takes that has next to nothing to do. */
const shortestUs = 4;
/** How much later a call begins that waits for another branch instead of its own. */
const hopUs = 3;

/** The branch of each call, and when it would run. */
export interface Assignment {
  readonly ofCalls: readonly number[];
  /** For each call the last one that other branches begin while it runs; itself where there is none. */
  readonly doneBy: readonly number[];
}

/**
 * Puts each call on a branch, 0 being the chain on which the longest way through the program lies. A call goes beside it
 * when the longest way is then done sooner, by estimates of what calls take: weight gradients, say, beside the gradients of
 * inputs. `dependencies` are those of `dependenciesOf`; any assignment is right, and some are fast.
 */
export function assignBranches(
  calls: readonly Call[],
  dependencies: readonly ReadonlySet<number>[],
  branches: number,
): Assignment {
  const durationsUs = calls.map(durationOf);
  const { earliestUs, latestUs } = boundsOf(durationsUs, dependencies);
  const freeUs = new Array<number>(branches).fill(0);
  const startsUs: number[] = [];
  const endsUs: number[] = [];
  const ofCalls: number[] = [];
  /** How far the chain is behind the longest way, for the other calls that it had to take on. */
  let lateUs = 0;
  const startOn = (branch: number, i: number) => {
    let startUs = freeUs[branch]!;
    for (const j of dependencies[i]!)
      startUs = Math.max(startUs, endsUs[j]! + (ofCalls[j] === branch ? 0 : hopUs));
    return startUs;
  };
  calls.forEach((_, i) => {
    let [branch, startUs] = [0, startOn(0, i)];
    const durationUs = durationsUs[i]!;
    const hasTime = latestUs[i]! - earliestUs[i]! - durationUs >= 2 * hopUs;
    for (let side = 1; side < (hasTime ? branches : 1); side++) {
      const sideUs = startOn(side, i);
      // On the chain it would take the chain's time.
      const isWorthIt = sideUs + durationUs + hopUs <= latestUs[i]! + lateUs + durationUs;
      if (isWorthIt && (branch === 0 || sideUs < startUs)) [branch, startUs] = [side, sideUs];
    }
    if (branch === 0) lateUs = Math.max(lateUs, freeUs[0]! - earliestUs[i]!);
    ofCalls.push(branch);
    startsUs.push(startUs);
    endsUs.push(startUs + durationUs);
    freeUs[branch] = endsUs[i]!;
  });
  return { ofCalls, doneBy: lastBegunMeanwhile(ofCalls, startsUs, endsUs) };
}

function lastBegunMeanwhile(
  ofCalls: readonly number[],
  startsUs: readonly number[],
  endsUs: readonly number[],
): number[] {
  return ofCalls.map((branch, i) => {
    const isMeanwhile = (startUs: number, j: number) =>
      j > i && ofCalls[j] !== branch && startUs < endsUs[i]! + hopUs;
    return Math.max(i, startsUs.findLastIndex(isMeanwhile));
  });
}

/** When each call could begin, and when it would have to be done, if every call had a GPU of its own. */
function boundsOf(durationsUs: readonly number[], dependencies: readonly ReadonlySet<number>[]) {
  const earliestUs: number[] = [];
  let totalUs = 0;
  durationsUs.forEach((duration, i) => {
    let startUs = 0;
    for (const j of dependencies[i]!) startUs = Math.max(startUs, earliestUs[j]! + durationsUs[j]!);
    earliestUs.push(startUs);
    totalUs = Math.max(totalUs, startUs + duration);
  });
  const latestUs = new Array<number>(durationsUs.length).fill(totalUs);
  for (let i = durationsUs.length - 1; i >= 0; i--)
    for (const j of dependencies[i]!) latestUs[j] = Math.min(latestUs[j]!, latestUs[i]! - durationsUs[i]!);
  return { earliestUs, latestUs };
}

function durationOf({ op, inputs, outputs, attributes }: Call): number {
  const { flops, bytesMoved, boundBy } = costOf(op, inputs, outputs, attributes as never);
  const rate = inputs.some(({ dtype }) => byteSize(dtype) > 2) ? flopsPerUs : lowFlopsPerUs;
  return shortestUs + Math.max(bytesMoved / bytesPerUs, boundBy === 'tensorCores' ? flops / rate : 0);
}
