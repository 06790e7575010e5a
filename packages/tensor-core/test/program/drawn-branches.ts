let state = 1;

function draw(below: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return (state >>> 16) % below;
}

/**
 * In the place of the function of that name: branches by chance. Any assignment must be right, so that the worst there are
 * serve as well as good ones.
 */
export function assignBranches(calls: readonly unknown[], _: unknown, branches: number) {
  return {
    ofCalls: calls.map(() => draw(branches)),
    doneBy: calls.map((__, i) => Math.min(calls.length - 1, i + draw(3))),
  };
}
