import { CollectiveError } from '../errors.ts';
import { type Rendezvous, awaitMembers } from '../group/await-members.ts';
import type { Outcome } from '../group/backend.ts';
import { rankNames } from '../ranks/rank-names.ts';
import { GlooBackend } from './gloo-backend.ts';

export interface ConnectGlooOptions extends Rendezvous {
  readonly host: string;
  readonly interfaceName: string;
}

/**
 * Connects the ranks of a group with each other. Throws a CollectiveError that names the ranks that did not come, and a
 * LibraryNotFoundError without Gloo.
 */
export async function connectGloo(options: ConnectGlooOptions): Promise<GlooBackend> {
  const { rank, ranks } = options;
  const backend = new GlooBackend({ ...options, size: ranks.length });
  try {
    const words = await awaitMembers(options, JSON.stringify(backend.addresses(rank)));
    const addresses = words.map((word, peer) => (peer === rank ? '' : (JSON.parse(word) as string[])[rank]!));
    const outcome = await new Promise<Outcome>((resolve) => backend.connect(addresses, resolve));
    if (outcome.status === 'failed') throw notConnected(options, outcome);
    return backend;
  } catch (error) {
    backend.close();
    throw error;
  }
}

function notConnected(
  { rank, ranks, op }: ConnectGlooOptions,
  { losses, message }: Extract<Outcome, { status: 'failed' }>,
): CollectiveError {
  const peers = [...losses.keys()].map((member) => ranks[member]!);
  const who = peers.length > 0 ? rankNames(peers) : 'the other ranks';
  return new CollectiveError(
    `${op}: rank ${ranks[rank]} could not connect to ${who}: ${message}. Gloo listens at any free port: is ` +
      'one blocked between the machines, or the wrong network interface taken (give { host } or GLOO_SOCKET_IFNAME)?',
    { op, rank: ranks[rank]!, peers },
  );
}
