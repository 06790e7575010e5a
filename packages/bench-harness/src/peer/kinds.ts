import type { PeerExecution } from '../execution/kinds.ts';
import { executionsOf } from '../execution/kinds.ts';

/** What runs the same steps in turn with ours. */
export const peerNames = ['torch', 'jax'] as const;
export type PeerName = (typeof peerNames)[number];

/** As readers know them. */
export const peerTitles: Readonly<Record<PeerName, string>> = { torch: 'PyTorch', jax: 'JAX' };

/** The peer that runs so. */
export function peerOfExecution(execution: PeerExecution): PeerName {
  return peerNames.find((name) => (executionsOf[name] as readonly PeerExecution[]).includes(execution))!;
}
