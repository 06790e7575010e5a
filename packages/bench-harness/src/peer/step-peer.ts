import { z } from 'zod';
import { sampleList, timeList } from '../measuring/statistics.ts';
import type { JsonObject } from '../records/json.ts';
import { PythonPeer } from './python-peer.ts';

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
export type PeerMemory = z.infer<typeof memoryReply>;

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
  readonly device: string;
  readonly seed: number;
  readonly threads: number;
}

/** A peer that runs the steps of a model, and the description of itself that it prepares them with. */
export abstract class StepPeer<Description extends object> extends PythonPeer {
  protected abstract readonly readyReply: z.ZodType<Description>;

  prepare(job: PeerJob): Promise<Description> {
    return this.request({ command: 'prepare', ...job }, this.readyReply);
  }

  run(steps: number): Promise<PeerBlock> {
    return this.request({ command: 'run', steps }, runReply);
  }

  async resetPeakMemory(): Promise<void> {
    await this.request({ command: 'reset-peak-memory' }, z.object({}));
  }

  memory(): Promise<PeerMemory> {
    return this.request({ command: 'memory' }, memoryReply);
  }
}
