import type { TorchAttention } from '../../attention/peer-kinds.ts';
import type { Pass } from '../../attention/work.ts';
import type { AttentionPeer } from '../../peer/attention-peer.ts';
import { PeerError } from '../../peer/python-peer.ts';
import type { Contender, Turn } from './contender.ts';

/** One of PyTorch's attentions. Whatever fails there is a row that says why, and ours are kept. */
export class TorchContender implements Contender {
  readonly name;
  readonly #attention: TorchAttention;
  readonly #peer: AttentionPeer;

  constructor(attention: TorchAttention, peer: AttentionPeer) {
    this.name = { side: 'torch', attention } as const;
    this.#attention = attention;
    this.#peer = peer;
  }

  probe(): Promise<number | null> {
    return this.#peer.probe(this.#attention);
  }

  sample(pass: Pass, turn: Turn): Promise<number[]> {
    return this.#peer.sample(this.#attention, pass, turn);
  }

  explain(error: unknown): ReturnType<Contender['explain']> {
    return error instanceof PeerError ? failureOf(error) : null;
  }
}

/** The row of an attention that PyTorch does not have, has no memory for, or fails in. */
export function failureOf({ code, message }: PeerError): NonNullable<ReturnType<Contender['explain']>> {
  if (code === 'NOT_AVAILABLE') return { status: 'not-available', reason: message };
  return { status: code === 'OUT_OF_MEMORY' ? 'out-of-memory' : 'failed', reason: message };
}
