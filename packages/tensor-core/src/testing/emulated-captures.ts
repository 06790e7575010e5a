import { captureIsolation, captureUnjoined, captureUnmatched, capturedEvent } from './emulated-results.ts';

/** Something that runs: a kernel where it has a grid and a block, x, y and z of each. */
export interface Work {
  (): void;
  readonly launch?: readonly number[];
}

/** Work of a graph. A launch's may be replaced. */
export interface GraphNode {
  run: Work;
  /** The stream that it was captured from. */
  readonly stream: number;
  /** It runs behind these. */
  readonly after: readonly GraphNode[];
}

/** A graph in the making. */
interface Capture {
  /** The stream that began it. */
  readonly origin: number;
  readonly nodes: GraphNode[];
  /** The streams that it took in, each with the nodes that its next one runs behind. */
  readonly ends: Map<number, readonly GraphNode[]>;
}

/** What an event marks that was recorded on a stream under capture. */
export interface CapturedPoint {
  readonly capture: Capture;
  readonly nodes: readonly GraphNode[];
}

/** The captures of an emulated GPU's streams: one stream begins, and those that wait for its events are taken in. */
export class EmulatedCaptures {
  readonly #byStream = new Map<number, Capture>();

  /** From now on what the stream is given does not run. */
  begin(stream: number): void {
    this.#byStream.set(stream, { origin: stream, nodes: [], ends: new Map([[stream, []]]) });
  }

  /** The nodes since `begin`, or a CUresult: where another stream began, or one was taken in and never waited for. */
  end(stream: number): readonly GraphNode[] | number {
    const capture = this.#byStream.get(stream);
    if (capture?.origin !== stream) return captureUnmatched;
    for (const taken of capture.ends.keys()) this.#byStream.delete(taken);
    const joined = allBefore(capture.ends.get(stream)!);
    const isJoined = [...capture.ends.values()].flat().every((node) => joined.has(node));
    return isJoined ? capture.nodes : captureUnjoined;
  }

  /** The nodes of the capture that the stream is a part of, those of its end last; null for none. */
  of(stream: number): { readonly nodes: readonly GraphNode[]; readonly ends: readonly GraphNode[] } | null {
    const capture = this.#byStream.get(stream);
    return capture ? { nodes: capture.nodes, ends: capture.ends.get(stream)! } : null;
  }

  /** The stream that began the capture of this one. */
  originOf(stream: number): number | null {
    return this.#byStream.get(stream)?.origin ?? null;
  }

  /** Whether the stream is under capture; then `run` is a node. */
  add(stream: number, run: Work): boolean {
    const capture = this.#byStream.get(stream);
    if (!capture) return false;
    const node = { run, stream, after: capture.ends.get(stream)! };
    capture.nodes.push(node);
    capture.ends.set(stream, [node]);
    return true;
  }

  /** What an event that is recorded now marks; null where the stream is not under capture. */
  pointOf(stream: number): CapturedPoint | null {
    const capture = this.#byStream.get(stream);
    return capture ? { capture, nodes: capture.ends.get(stream)! } : null;
  }

  /** Lets a stream wait for what an event marks, null being work that runs; gives a CUresult. */
  join(stream: number, point: CapturedPoint | null): number {
    const own = this.#byStream.get(stream);
    if (point === null) return own ? captureIsolation : 0;
    const { capture, nodes } = point;
    if (this.#byStream.get(capture.origin) !== capture) return capturedEvent;
    if (own && own !== capture) return captureIsolation;
    this.#byStream.set(stream, capture);
    capture.ends.set(stream, [...new Set([...(capture.ends.get(stream) ?? []), ...nodes])]);
    return 0;
  }
}

/** Nodes, and all that they run behind. */
function allBefore(nodes: readonly GraphNode[]): Set<GraphNode> {
  const found = new Set(nodes);
  // A set's walk sees what is added meanwhile.
  for (const { after } of found) for (const node of after) found.add(node);
  return found;
}

/**
 * An order of a graph's nodes that their edges allow: where they are of several streams, half the time that of one stream
 * runs as early as it can and those of the others as late as they can.
 */
export function drawOrder(nodes: readonly GraphNode[], random: () => number): GraphNode[] {
  const streams = [...new Set(nodes.map(({ stream }) => stream))];
  if (streams.length < 2) return [...nodes];
  const favourite = random() % 2 === 0 ? streams[random() % streams.length] : null;
  const followers = new Map<GraphNode, GraphNode[]>(nodes.map((node) => [node, []]));
  const waitsFor = new Map(nodes.map((node) => [node, node.after.length]));
  for (const node of nodes) for (const before of node.after) followers.get(before)!.push(node);
  const ready = nodes.filter(({ after }) => after.length === 0);
  const order: GraphNode[] = [];
  while (ready.length > 0) {
    const preferred = ready.findIndex(({ stream }) => stream === favourite);
    const [node] = ready.splice(preferred < 0 ? random() % ready.length : preferred, 1);
    order.push(node!);
    for (const follower of followers.get(node!)!) {
      const left = waitsFor.get(follower)! - 1;
      waitsFor.set(follower, left);
      if (left === 0) ready.push(follower);
    }
  }
  return order;
}
