/** Ways to run a step: op by op, or as the program that `compile` makes of it, also with its products' algorithms timed. */
export const executions = ['eager', 'compiled', 'autotuned'] as const;
export type Execution = (typeof executions)[number];

/** Those by `compile`. */
export type CompiledExecution = Exclude<Execution, 'eager'>;

/** Those of PyTorch: op by op, or by `torch.compile` in its modes (`compile` is the default one). */
export const peerExecutions = ['eager', 'compile', 'reduce-overhead', 'max-autotune'] as const;
export type PeerExecution = (typeof peerExecutions)[number];

/** Whether a GPU replays CUDA graphs then. What they work in PyTorch counts as reserved memory, and not as allocated. */
export function replaysGraphs(execution: PeerExecution): boolean {
  return execution === 'reduce-overhead' || execution === 'max-autotune';
}
