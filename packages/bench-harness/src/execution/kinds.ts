/** Ways to run a step: op by op, or as the program that `compile` makes of it, also with its products' algorithms timed. */
export const executions = ['eager', 'compiled', 'autotuned'] as const;
export type Execution = (typeof executions)[number];

/** Those by `compile`. */
export type CompiledExecution = Exclude<Execution, 'eager'>;

/**
 * Those of each peer, the usual one first. PyTorch runs op by op, by `torch.compile` in its modes (`compile` is the default
 * one), or with forward, backward and AdamW in one CUDA graph; JAX all of a step in one jit.
 */
export const executionsOf = {
  torch: ['eager', 'compile', 'reduce-overhead', 'max-autotune', 'whole-graph'],
  jax: ['jit'],
} as const;
export const peerExecutions = [...executionsOf.torch, ...executionsOf.jax] as const;
export type PeerExecution = (typeof peerExecutions)[number];

/** Whether PyTorch replays CUDA graphs then. What they work in counts as reserved memory, and not as allocated. */
export function replaysGraphs(execution: PeerExecution): boolean {
  return ['reduce-overhead', 'max-autotune', 'whole-graph'].includes(execution);
}
