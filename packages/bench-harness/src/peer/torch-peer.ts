import { z } from 'zod';
import { sampleList } from '../measuring/statistics.ts';
import type { JsonObject } from '../records/json.ts';
import { PythonPeer } from './python-peer.ts';

/** Versions of PyTorch and Python, and the device as PyTorch names it. */
export const readyReply = z.object({
  torch: z.string(),
  python: z.string(),
  device: z.string(),
  /** On the CPU the library of its matrix products, with its kernels; see python/blas_library.py. */
  blas: z.string().nullish(),
});
const runReply = z.object({
  deviceMs: sampleList,
  wallMs: sampleList,
  phasesMs: z.record(z.string(), sampleList),
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
const memoryReply = z.object({
  peakAllocatedBytes: z.number().nullable(),
  peakReservedBytes: z.number().nullable(),
});
export type PeerDescription = z.infer<typeof readyReply>;
export type PeerBlock = z.infer<typeof runReply>;
export type PeerStepProfile = z.infer<typeof profileReply>;
export type PeerMemory = z.infer<typeof memoryReply>;

/** What python/torch_e2e.py prepares; `threads` counts on the CPU only. */
export interface PeerJob {
  readonly config: JsonObject;
  readonly batch: number;
  readonly context: number;
  readonly mode: string;
  readonly dtype: string;
  /** A `PeerAttention`. */
  readonly attention: string;
  /** A `PeerExecution`; eager if not given. */
  readonly execution?: string;
  readonly device: string;
  readonly seed: number;
  readonly threads: number;
}

/** The same work in PyTorch, by python/torch_e2e.py. */
export class TorchPeer extends PythonPeer {
  constructor(python: string, threads: number) {
    super('torch_e2e.py', python, threads);
  }

  prepare(job: PeerJob): Promise<PeerDescription> {
    return this.request({ command: 'prepare', ...job }, readyReply);
  }

  run(steps: number): Promise<PeerBlock> {
    return this.request({ command: 'run', steps }, runReply);
  }

  /** Runs one step under PyTorch's profiler. */
  profile(): Promise<PeerStepProfile> {
    return this.request({ command: 'profile' }, profileReply);
  }

  async resetPeakMemory(): Promise<void> {
    await this.request({ command: 'reset-peak-memory' }, z.object({}));
  }

  memory(): Promise<PeerMemory> {
    return this.request({ command: 'memory' }, memoryReply);
  }
}
