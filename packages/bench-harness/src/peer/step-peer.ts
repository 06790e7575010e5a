import { z } from 'zod';
import { sampleList, timeList } from '../measuring/statistics.ts';
import type { JsonObject } from '../records/json.ts';
import { peerTitles, type PeerName } from './kinds.ts';
import { PythonPeer } from './python-peer.ts';

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

/** Versions of JAX and Python, the device as JAX names it, and which of its attentions it took. */
export const jaxReadyReply = z.object({
  jax: z.string(),
  python: z.string(),
  device: z.string(),
  attention: z.enum(['cudnn', 'xla']),
});
export type JaxDescription = z.infer<typeof jaxReadyReply>;

const runReply = z.object({
  deviceMs: sampleList,
  wallMs: sampleList,
  phasesMs: z.record(z.string(), sampleList),
  /** Of as many steps once more, each begun before the one before had ended; JAX's alone. */
  backToBackMs: timeList.optional(),
  /** Of the last step, which is finite; where it was looked at. */
  loss: z.number().nullish(),
});
const memoryReply = z.object({
  peakAllocatedBytes: z.number().nullable(),
  peakReservedBytes: z.number().nullable(),
});
export type PeerBlock = z.infer<typeof runReply>;

/** What the programs of python/ that run steps prepare; `threads` counts on the CPU only. */
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
  /** A policy of recomputation; none if not given. */
  readonly recompute?: string;
  /** Whether logits are `chunked`; whole if not given. */
  readonly logits?: string;
  readonly device: string;
  readonly seed: number;
  readonly threads: number;
}

/** What each peer says of itself. */
interface Descriptions {
  readonly torch: PeerDescription;
  readonly jax: JaxDescription;
}

/** The program of python/ that runs the steps of each. */
const programs = {
  torch: { script: 'torch_e2e.py', ready: readyReply },
  jax: { script: 'jax_e2e.py', ready: jaxReadyReply },
} as const;

/** A peer that runs the steps of a model. Every request may throw a PeerError. */
export class StepPeer<Name extends PeerName = PeerName> extends PythonPeer {
  readonly #name: Name;

  constructor(name: Name, python: string, threads: number) {
    super(programs[name].script, python, threads, peerTitles[name]);
    this.#name = name;
  }

  prepare(job: PeerJob): Promise<Descriptions[Name]> {
    const ready = programs[this.#name].ready as unknown as z.ZodType<Descriptions[Name]>;
    return this.request({ command: 'prepare', ...job }, ready);
  }

  run(steps: number): Promise<PeerBlock> {
    return this.request({ command: 'run', steps }, runReply);
  }

  async resetPeakMemory(): Promise<void> {
    await this.request({ command: 'reset-peak-memory' }, z.object({}));
  }

  memory(): Promise<z.infer<typeof memoryReply>> {
    return this.request({ command: 'memory' }, memoryReply);
  }

  /** Runs one step under PyTorch's profiler; JAX has no such command. */
  profile(): Promise<PeerStepProfile> {
    return this.request({ command: 'profile' }, profileReply);
  }
}
