import { z } from 'zod';
import type { TorchAttention } from '../attention/peer-kinds.ts';
import type { AttentionShape } from '../attention/shape.ts';
import type { Pass } from '../attention/work.ts';
import { PythonPeer } from './python-peer.ts';
import { readyReply, type PeerDescription } from './torch-peer.ts';

/** What python/torch_attention.py prepares; `threads` counts on the CPU only. */
export interface AttentionJob extends AttentionShape {
  readonly device: string;
  readonly seed: number;
  readonly threads: number;
  /** Written between samples to flush the L2 cache; 0 for nothing. */
  readonly flushedBytes: number;
}

/** Attention in PyTorch, by python/torch_attention.py. Every request may throw a PeerError. */
export class AttentionPeer extends PythonPeer {
  constructor(python: string, threads: number) {
    super('torch_attention.py', python, threads);
  }

  prepare(job: AttentionJob): Promise<PeerDescription> {
    return this.request({ command: 'prepare', ...job }, readyReply);
  }

  /** Runs both passes once, and returns the most bytes held; null on the CPU, where PyTorch does not count. */
  async probe(attention: TorchAttention): Promise<number | null> {
    const reply = z.object({ peakAllocatedBytes: z.number().nullable() });
    return (await this.request({ command: 'probe', attention }, reply)).peakAllocatedBytes;
  }

  /** Milliseconds of each call, as `doBench` takes them. */
  async sample(
    attention: TorchAttention,
    pass: Pass,
    times: { readonly warmupMs: number; readonly repeatMs: number },
  ): Promise<number[]> {
    const reply = z.object({ samplesMs: z.array(z.number()) });
    return (await this.request({ command: 'sample', attention, pass, ...times }, reply)).samplesMs;
  }
}
