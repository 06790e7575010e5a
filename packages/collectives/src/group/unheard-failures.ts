/** By the group, as its members' object. */
const unheard = new Map<object, Error>();
let isWatched = false;

/**
 * A call has failed, and a program may go on as if it had not: on a GPU, `wait` returns before the call has run, and the ranks
 * of a call that did not fit need not wait for it at all.
 */
export function noteUnheard(group: object, error: Error): void {
  unheard.set(group, error);
  if (!isWatched) process.on('exit', tellAll);
  isWatched = true;
}

/** The program has learnt of a failure of this group. */
export function noteHeard(group: object): void {
  unheard.delete(group);
}

/** A program that never learnt of it must not end as if all were well. */
function tellAll(): void {
  for (const error of unheard.values()) console.error(error);
  if (unheard.size > 0) process.exitCode ||= 1;
}
