import { currentTrace } from '@roofline/tensor-core/kernel-api';

/** Throws a CompileError in a compiled function: what happens to an optimizer between its steps, replays would leave out. */
export function refuseReplays(what: string): void {
  currentTrace()?.refuse(`${what}, which replays would not`, 'Do so before each call');
}
