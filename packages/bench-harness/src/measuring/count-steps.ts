type Progress = (done: number, total: number, message?: string) => void;

/**
 * Tells how far a cell has come, called after each step: `warm-up 1/2` of those that do not count, then `steps 1/10` of
 * those that do, or by another name.
 */
export function countSteps(
  progress: Progress,
  { warmup, steps, name = 'steps' }: { warmup: number; steps: number; name?: string },
): () => void {
  let done = 0;
  return () => {
    done++;
    if (done <= warmup) progress(done, warmup, 'warm-up');
    else progress(done - warmup, steps, name);
  };
}
