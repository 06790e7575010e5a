import { RooflineError } from '@roofline/tensor-core';

/** What a CollectiveError holds besides its message. */
export interface CollectiveErrorDetails {
  /** The op that failed, as users call it. */
  readonly op: string;
  /** The rank that throws. */
  readonly rank: number;
  /** The ranks that were lost, that did not come, or that brought something else; none where that is not known. */
  readonly peers: readonly number[];
}

/** A collective that did not come about: a rank was lost, did not come in time, or asked for something else. */
export class CollectiveError extends RooflineError {
  readonly op: string;
  readonly rank: number;
  readonly peers: readonly number[];

  constructor(message: string, { op, rank, peers }: CollectiveErrorDetails, options?: ErrorOptions) {
    super('COLLECTIVE', message, options);
    this.op = op;
    this.rank = rank;
    this.peers = peers;
  }

  /** The first of `peers`; null where none is known. */
  get peer(): number | null {
    return this.peers[0] ?? null;
  }
}

/** The rendezvous store cannot be reached, refuses, or has not got a key in time. */
export class StoreError extends RooflineError {
  /** The keys that did not come in time. */
  readonly missingKeys: readonly string[];

  constructor(message: string, missingKeys: readonly string[] = [], options?: ErrorOptions) {
    super('STORE', message, options);
    this.missingKeys = missingKeys;
  }
}
