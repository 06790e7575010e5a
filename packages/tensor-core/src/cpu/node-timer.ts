import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onnxRuntime } from './onnx-runtime.ts';

/** A node of a graph in one run. */
export interface TimedNode {
  /** Its ONNX operator. */
  readonly opType: string;
  /** Whole microseconds, as ONNX Runtime counts. */
  readonly durationUs: number;
}

/** What the timer needs of a session: it times a second one of the same graph. */
export interface TimableSession {
  readonly isDisposed: boolean;
  encodeModel(): Uint8Array;
}

interface TimedSession {
  readonly handle: number;
  /** Of its runs, by their number among all. */
  readonly runs: number[];
}

/** Those that the last timer saw: they will most likely run again, and are made before the clock starts. */
let usedBefore: readonly TimableSession[] = [];
let current: NodeTimer | null = null;

/** The timer at work; null when nodes are not timed. */
export function currentNodeTimer(): NodeTimer | null {
  return current;
}

/** Sets the timer of every graph that runs from now on, or none. */
export function timeNodes(timer: NodeTimer | null): void {
  current = timer;
}

/**
 * Times each node of the graphs that run on the CPU, by ONNX Runtime's own profiler. That is a property of sessions, so
 * that others run in their stead meanwhile.
 */
export class NodeTimer {
  readonly #sessions = new Map<TimableSession, TimedSession>();
  #folder = '';
  #runCount = 0;

  /** Runs so far. */
  get runCount(): number {
    return this.#runCount;
  }

  /** Makes the sessions that ran under the timer before. */
  prepare(): void {
    this.#folder = mkdtempSync(join(tmpdir(), `roofline-nodes-${process.pid}-`));
    for (const session of usedBefore) if (!session.isDisposed) this.#timed(session);
  }

  /** The handle to run in place of `session`. */
  beginRun(session: TimableSession): number {
    const { handle, runs } = this.#timed(session);
    runs.push(this.#runCount++);
    return handle;
  }

  /** Reads what was timed and gives the sessions back. Returns the nodes of each run, in the order in which they ran. */
  finish(): TimedNode[][] {
    const nodes: TimedNode[][] = Array.from({ length: this.#runCount }, () => []);
    try {
      for (const { handle, runs } of this.#sessions.values()) {
        const timed = readRuns(readFileSync(onnxRuntime().endProfiling(handle), 'utf8'));
        runs.forEach((run, i) => (nodes[run] = timed[i] ?? []));
      }
    } finally {
      for (const { handle } of this.#sessions.values()) onnxRuntime().releaseSession(handle);
      usedBefore = [...this.#sessions].filter(([, { runs }]) => runs.length > 0).map(([session]) => session);
      rmSync(this.#folder, { recursive: true, force: true });
    }
    return nodes;
  }

  #timed(session: TimableSession): TimedSession {
    let timed = this.#sessions.get(session);
    if (!timed) {
      // The file's name behind the prefix is the time of day: two sessions may share it.
      const prefix = join(this.#folder, String(this.#sessions.size));
      timed = { handle: onnxRuntime().createProfiledSession(session.encodeModel(), prefix), runs: [] };
      this.#sessions.set(session, timed);
    }
    return timed;
  }
}

interface TraceEvent {
  readonly cat: string;
  readonly name: string;
  readonly dur: number;
  readonly args: { readonly op_name?: string };
}

/** The nodes of each run of a session: the event that ends a run comes behind those of its nodes. */
export function readRuns(trace: string): TimedNode[][] {
  const runs: TimedNode[][] = [];
  let nodes: TimedNode[] = [];
  for (const { cat, name, dur, args } of JSON.parse(trace) as TraceEvent[]) {
    if (cat === 'Node' && name.endsWith('_kernel_time'))
      nodes.push({ opType: args.op_name!, durationUs: dur });
    else if (name === 'model_run') {
      runs.push(nodes);
      nodes = [];
    }
  }
  return runs;
}
