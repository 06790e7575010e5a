import { z } from 'zod';
import { StepPeer } from './step-peer.ts';

/** Versions of PyTorch and Python, and the device as PyTorch names it. */
export const readyReply = z.object({
  torch: z.string(),
  python: z.string(),
  device: z.string(),
  /** On the CPU the library of its matrix products, with its kernels; see python/blas_library.py. */
  blas: z.string().nullish(),
});
/** One step under PyTorch's profiler; see python/torch_profile.py. */
export const profileReply = z.object({
  /** Between two events on the device around the step. */
  deviceMs: z.number(),
  /** The time in which at least one kernel ran. */
  busyUs: z.number(),
  strings: z.array(z.string()),
  /** Names and phases are indices into `strings`; -1 means no phase. */
  kernels: z.object({
    name: z.array(z.number()),
    phase: z.array(z.number()),
    durationUs: z.array(z.number()),
  }),
});
export type PeerDescription = z.infer<typeof readyReply>;
export type PeerStepProfile = z.infer<typeof profileReply>;

/** The same work in PyTorch, by python/torch_e2e.py. */
export class TorchPeer extends StepPeer<PeerDescription> {
  protected override readonly readyReply = readyReply;

  constructor(python: string, threads: number) {
    super('torch_e2e.py', python, threads);
  }

  /** Runs one step under PyTorch's profiler. */
  profile(): Promise<PeerStepProfile> {
    return this.request({ command: 'profile' }, profileReply);
  }
}
