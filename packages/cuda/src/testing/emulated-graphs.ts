import { HostMemory } from '../base/host/host-memory.ts';
import type { CapturedWork, EmulatedQueues } from './emulated-queues.ts';
import { giveHandle, giveInt, readAt } from './out-parameters.ts';
import { invalidHandle } from './emulated-results.ts';

// CUgraphNodeType of cuda.h.
const [kernelNode, hostNode] = [0, 3];

/** A node of a graph: a launch whose arguments may be replaced, or any other work. */
interface GraphNode {
  run: () => void;
  readonly isActivity: boolean;
  /** The places in its graph of those that run before it. */
  readonly after: readonly number[];
}

/** What graphs ask of their driver. */
export interface GraphDriver {
  readonly queues: EmulatedQueues;
  /** The CUresult of a call that queues work or orders it. */
  after(action: () => void): number;
  /** What runs a launch as often as it is called; null for a kernel that is not there. */
  launchWork(arguments_: readonly number[]): (() => void) | null;
  /** A graph of as many kernels, copies and fills was launched. */
  launched(activities: number): void;
}

/**
 * CUDA graphs of an emulated GPU: what captured streams were given, as nodes that run in any order that the streams and their
 * events allow, so that a missing wait shows.
 */
export class EmulatedGraphs {
  readonly #driver: GraphDriver;
  readonly #graphs: GraphNode[][] = [];
  /** The graphs that streams are captured into. */
  readonly #captured = new Map<number, number>();
  readonly #nodes: GraphNode[] = [];
  /** What captures gave each node. */
  readonly #nodesByWork = new Map<CapturedWork, GraphNode>();
  /** Where a capture's last node is given. */
  readonly #lastNode = new HostMemory(8);

  constructor(driver: GraphDriver) {
    this.#driver = driver;
  }

  /** The driver's functions for graphs. */
  functions() {
    return { ...this.#captures(), ...this.#launches() };
  }

  #captures() {
    const { queues } = this.#driver;
    return {
      cuStreamBeginCapture: (stream: number) => {
        this.#captured.set(stream, this.#graphs.push([]));
        return this.#driver.after(() => queues.beginCapture(stream));
      },
      cuStreamEndCapture: (stream: number, out: number) => {
        const works = queues.endCapture(stream);
        if (typeof works === 'number') return works;
        const graph = this.#captured.get(stream)!;
        this.#captured.delete(stream);
        this.#graphs[graph - 1] = works.map((work) => this.#nodeOf(work, works));
        return giveHandle(out, graph);
      },
      cuStreamGetCaptureInfo: (
        stream: number,
        status: number,
        _id: number,
        graph: number,
        dependencies: number,
        _edges: number,
        count: number,
      ) => {
        const captured = queues.capturedBy(stream);
        giveInt(status, captured ? 1 : 0);
        giveHandle(graph, captured ? this.#captureOf(captured.works) : 0);
        giveHandle(count, captured ? captured.last.length : 0);
        const last = captured?.last.at(-1);
        this.#lastNode.writeInt64(0, last ? this.#handleOf(this.#nodeOf(last, captured!.works)) : 0);
        return giveHandle(dependencies, this.#lastNode.address);
      },
    };
  }

  #launches() {
    const { queues } = this.#driver;
    return {
      cuGraphInstantiate: (out: number, graph: number) => giveHandle(out, graph),
      cuGraphLaunch: (graph: number, stream: number) => {
        // What a node is given later is for later launches.
        const nodes = this.#graphs[graph - 1]!;
        const works = nodes.map(({ run, after }) => ({ run, after }));
        const result = this.#driver.after(() => queues.pushGraph(stream, works));
        this.#driver.launched(nodes.filter(({ isActivity }) => isActivity).length);
        return result;
      },
      cuGraphExecKernelNodeSetParams: (_graph: number, node: number, parameters: number) =>
        this.#replaceLaunch(this.#nodes[node - 1]!, parameters),
      cuGraphGetNodes: (graph: number, nodes: number, count: number) => {
        const all = this.#nodesOf(graph);
        if (nodes !== 0) all.forEach((node, i) => giveHandle(nodes + 8 * i, this.#handleOf(node)));
        return giveHandle(count, all.length);
      },
      cuGraphNodeGetType: (node: number, type: number) =>
        giveInt(type, this.#nodes[node - 1]!.isActivity ? kernelNode : hostNode),
      cuGraphDestroy: () => 0,
      cuGraphExecDestroy: () => 0,
    };
  }

  /** Those of a graph, also while a stream is captured into it. */
  #nodesOf(graph: number): readonly GraphNode[] {
    for (const [stream, own] of this.#captured) {
      if (own !== graph) continue;
      const { works } = this.#driver.queues.capturedBy(stream)!;
      return works.map((work) => this.#nodeOf(work, works));
    }
    return this.#graphs[graph - 1]!;
  }

  /** The graph that a capture goes into. */
  #captureOf(works: readonly CapturedWork[]): number {
    for (const [stream, graph] of this.#captured)
      if (this.#driver.queues.capturedBy(stream)!.works === works) return graph;
    return 0;
  }

  /** The node of a work among those of its capture. */
  #nodeOf(work: CapturedWork, works: readonly CapturedWork[]): GraphNode {
    let node = this.#nodesByWork.get(work);
    if (!node) {
      const { run, isActivity } = work;
      node = { run, isActivity, after: work.after.map((before) => works.indexOf(before)) };
      this.#nodesByWork.set(work, node);
    }
    return node;
  }

  #handleOf(node: GraphNode): number {
    const known = this.#nodes.indexOf(node);
    return known < 0 ? this.#nodes.push(node) : known + 1;
  }

  /** CUDA_KERNEL_NODE_PARAMS: the kernel, its sizes, its arguments by pointers or packed. */
  #replaceLaunch(node: GraphNode, parameters: number): number {
    const words = readAt(parameters, 56);
    const sizes = Array.from({ length: 7 }, (_, i) => words.getUint32(8 + 4 * i, true));
    const at = (offset: number) => Number(words.getBigUint64(offset, true));
    const work = this.#driver.launchWork([at(0), ...sizes, 0, at(40), at(48)]);
    if (!work) return invalidHandle;
    node.run = work;
    return 0;
  }
}
