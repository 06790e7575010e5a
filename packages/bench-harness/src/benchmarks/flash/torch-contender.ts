import { z } from 'zod';
import type { TorchAttention } from '../../attention/peer-kinds.ts';
import type { Pass } from '../../attention/work.ts';
import { PeerError, type PythonPeer } from '../../peer/python-peer.ts';
import type { Contender, Turn } from './contender.ts';

/** One of PyTorch's attentions. Whatever fails there is a row that says why, and ours are kept. */
export class TorchContender implements Contender {
  readonly name;
  readonly #attention: TorchAttention;
  readonly #peer: PythonPeer;

  /** `peer` runs python/torch_attention.py, and is prepared. */
  constructor(attention: TorchAttention, peer: PythonPeer) {
    this.name = { side: 'torch', attention } as const;
    this.#attention = attention;
    this.#peer = peer;
  }

  /** Null on the CPU, where PyTorch does not count. */
  async probe(): Promise<number | null> {
    const reply = z.object({ peakAllocatedBytes: z.number().nullable() });
    const request = { command: 'probe', attention: this.#attention };
    return (await this.#peer.request(request, reply)).peakAllocatedBytes;
  }

  async sample(pass: Pass, turn: Turn): Promise<number[]> {
    const reply = z.object({ samplesMs: z.array(z.number()) });
    const request = { command: 'sample', attention: this.#attention, pass, ...turn };
    return (await this.#peer.request(request, reply)).samplesMs;
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
