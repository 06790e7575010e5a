import { HostMemory } from '../base/host/host-memory.ts';
import type { EmulatedQueues } from './emulated-queues.ts';
import { giveHandle, giveInt, readAt } from './out-parameters.ts';
import { invalidHandle, invalidValue } from './emulated-results.ts';

/** A node of a graph: a launch whose arguments may be replaced, or any other work. */
interface GraphNode {
  run: () => void;
}

/** What graphs ask of their driver. */
export interface GraphDriver {
  readonly queues: EmulatedQueues;
  /** The CUresult of a call that queues work or orders it. */
  after(action: () => void): number;
  /** What runs a launch as often as it is called; null for a kernel that is not there. */
  launchWork(arguments_: readonly number[]): (() => void) | null;
  /** A graph of as many nodes was launched. */
  launched(activities: number): void;
}

/** CUDA graphs of an emulated GPU: what a captured stream was given, as nodes that run one after another. */
export class EmulatedGraphs {
  readonly #driver: GraphDriver;
  readonly #graphs: GraphNode[][] = [];
  /** The graphs that streams are captured into. */
  readonly #captured = new Map<number, number>();
  readonly #nodes: GraphNode[] = [];
  readonly #nodesByWork = new Map<() => void, GraphNode>();
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
        const nodes = queues.endCapture(stream);
        if (!nodes) return invalidValue;
        const graph = this.#captured.get(stream)!;
        this.#captured.delete(stream);
        this.#graphs[graph - 1] = nodes.map((run) => this.#nodeOf(run));
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
        const last = captured?.at(-1);
        giveInt(status, captured ? 1 : 0);
        giveHandle(graph, captured ? this.#captured.get(stream)! : 0);
        giveHandle(count, last ? 1 : 0);
        this.#lastNode.writeInt64(0, last ? this.#handleOf(this.#nodeOf(last)) : 0);
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
        const runs = this.#graphs[graph - 1]!.map(({ run }) => run);
        const result = this.#driver.after(() =>
          queues.push(stream, () => {
            for (const run of runs) run();
          }),
        );
        this.#driver.launched(runs.length);
        return result;
      },
      cuGraphExecKernelNodeSetParams: (_graph: number, node: number, parameters: number) =>
        this.#replaceLaunch(this.#nodes[node - 1]!, parameters),
      cuGraphGetNodes: (graph: number, _nodes: number, count: number) =>
        giveHandle(count, this.#nodeCount(graph)),
      cuGraphDestroy: () => 0,
      cuGraphExecDestroy: () => 0,
    };
  }

  /** How many a graph has, also while a stream is captured into it. */
  #nodeCount(graph: number): number {
    for (const [stream, own] of this.#captured)
      if (own === graph) return this.#driver.queues.capturedBy(stream)!.length;
    return this.#graphs[graph - 1]!.length;
  }

  #nodeOf(run: () => void): GraphNode {
    let node = this.#nodesByWork.get(run);
    if (!node) this.#nodesByWork.set(run, (node = { run }));
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
