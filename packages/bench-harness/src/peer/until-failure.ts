import { PeerError } from './python-peer.ts';

/** A peer that is asked for things until one fails: its failure does not spoil ours, but becomes part of the result. */
export class UntilFailure<Peer> {
  readonly peer: Peer;
  /** The first; what is asked for after it is skipped. */
  failure: PeerError | null = null;

  constructor(peer: Peer) {
    this.peer = peer;
  }

  async attempt(work: (peer: Peer) => Promise<void>): Promise<void> {
    if (this.failure !== null) return;
    try {
      await work(this.peer);
    } catch (error) {
      if (!(error instanceof PeerError)) throw error;
      this.failure = error;
    }
  }
}
