import { byteSize, type ExplainedCall } from '@roofline/tensor-core';

/** Bytes of what a program makes in calls outside of the range `backward` and reads in those of it: what is kept for them. */
export function heldBetweenPasses(
  calls: readonly Pick<ExplainedCall, 'range' | 'inputs' | 'outputs'>[],
): number {
  // A schedule may have calls of the backward pass that need nothing of the forward pass go before it.
  const [backward, forward] = [true, false].map((isBackward) =>
    calls.filter(({ range }) => range.includes('backward') === isBackward),
  );
  const isRead = new Set(backward!.flatMap(({ inputs }) => inputs.map(({ storage }) => storage)));
  const bytes = new Map<number, number>();
  for (const { storage, source, dtype, shape } of forward!.flatMap(({ outputs }) => outputs)) {
    if (source !== 'made' || !isRead.has(storage)) continue;
    const own = shape.reduce((product, size) => product * size, byteSize(dtype));
    // Several may lie in one storage; a view is no larger than what it looks at.
    bytes.set(storage, Math.max(own, bytes.get(storage) ?? 0));
  }
  return [...bytes.values()].reduce((sum, own) => sum + own, 0);
}
