import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onnxRuntime } from './onnx-runtime.ts';

/** A node of a graph, and its part of the time that the graph takes; those of a graph add up to 1. */
export interface NodeShare {
  /** Its ONNX operator. */
  readonly opType: string;
  readonly share: number;
}

/** What is needed of a session to time its nodes. */
export interface ReplayableSession {
  /** The operators of its graph. */
  readonly opTypes: readonly string[];
  readonly dividesIntegers: boolean;
  encodeModel(): Uint8Array;
  /** Runs `handle`, another session of the same graph, over zeros, so many times. */
  replay(handle: number, times: number): void;
}

/** ONNX Runtime counts whole microseconds: several runs tell more. */
const replays = 4;

const known = new WeakMap<ReplayableSession, readonly NodeShare[]>();

/**
 * How the time of a session divides over the nodes of its graph. ONNX Runtime times nodes, but some ten microseconds a
 * node slower: so not in place, but once, over zeros, by a session of the same graph.
 */
export function nodeShares(session: ReplayableSession): readonly NodeShare[] {
  let shares = known.get(session);
  if (!shares) {
    shares = isDivisible(session)
      ? measureShares(session)
      : [{ opType: session.opTypes.join(' '), share: 1 }];
    known.set(session, shares);
  }
  return shares;
}

/** A graph of one node needs no timing. One that divides integers cannot run over zeros and is told as a whole. */
function isDivisible({ opTypes, dividesIntegers }: ReplayableSession): boolean {
  return opTypes.length > 1 && !dividesIntegers;
}

function measureShares(session: ReplayableSession): NodeShare[] {
  const runtime = onnxRuntime();
  const folder = mkdtempSync(join(tmpdir(), `roofline-nodes-${process.pid}-`));
  try {
    const handle = runtime.createProfiledSession(session.encodeModel(), join(folder, 'nodes'));
    try {
      session.replay(handle, 1 + replays);
      return sharesOf(readFileSync(runtime.endProfiling(handle), 'utf8'));
    } finally {
      runtime.releaseSession(handle);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface TraceEvent {
  readonly cat: string;
  readonly name: string;
  readonly dur: number;
  readonly args: { readonly op_name?: string };
}

/** The shares that ONNX Runtime's trace of several runs tells; the first run warms up. */
export function sharesOf(trace: string): NodeShare[] {
  const events = JSON.parse(trace) as TraceEvent[];
  const timed = events.filter(({ cat, name }) => cat === 'Node' && name.endsWith('_kernel_time'));
  const nodeCount = timed.length / events.filter(({ name }) => name === 'model_run').length;
  const totals = timed.slice(0, nodeCount).map(({ args }, node) => ({
    opType: args.op_name!,
    durationUs: timed.reduce(
      (sum, { dur }, i) => (i >= nodeCount && i % nodeCount === node ? sum + dur : sum),
      0,
    ),
  }));
  const totalUs = totals.reduce((sum, { durationUs }) => sum + durationUs, 0);
  return totals.map(({ opType, durationUs }) => ({
    opType,
    share: totalUs === 0 ? 1 / nodeCount : durationUs / totalUs,
  }));
}

/** Sessions in the order in which they ran, one entry a run. */
export type RunLog = ReplayableSession[];

let log: RunLog | null = null;

/** Writes every run of a session to `next` from now on, or to none. */
export function logRuns(next: RunLog | null): void {
  log = next;
}

export function noteRun(session: ReplayableSession): void {
  log?.push(session);
}
