import { HostMemory } from '../native/host-memory.ts';
import { type GraphNode, type Work, drawOrder } from './emulated-captures.ts';
import type { EmulatedQueues } from './emulated-queues.ts';
import { give, giveHandle, giveInt, readAt } from './out-parameters.ts';
import { invalidHandle } from './emulated-results.ts';

/** What graphs ask of their driver. */
export interface GraphDriver {
  readonly queues: EmulatedQueues;
  /** The CUresult of a call that queues work or orders it. */
  after(action: () => void): number;
  /** What runs a launch as often as it is called; null for a kernel that is not there. */
  launchWork(arguments_: readonly number[]): Work | null;
  /** A graph of as many nodes was launched. */
  launched(activities: number): void;
}

// CUgraphNodeType, and where CUDA_KERNEL_NODE_PARAMS has the grid; copies pass for fills.
const [kernelNode, fillNode] = [0, 2];
const gridOffset = 8;

/** More than streams come together in one. */
const mostEnds = 64;

/** CUDA graphs of an emulated GPU: what captured streams were given, in any order that their events allow. */
export class EmulatedGraphs {
  readonly #driver: GraphDriver;
  readonly #graphs: (readonly GraphNode[])[] = [];
  /** The graphs that streams which began a capture are captured into. */
  readonly #captured = new Map<number, number>();
  readonly #nodes: GraphNode[] = [];
  /** Where a capture's last nodes are told. */
  readonly #ends = new HostMemory(8 * mostEnds);

  constructor(driver: GraphDriver) {
    this.#driver = driver;
  }

  /** The driver's functions for graphs. */
  functions() {
    return { ...this.#captures(), ...this.#launches() };
  }

  #captures() {
    const { captures } = this.#driver.queues;
    return {
      cuStreamBeginCapture: (stream: number) => {
        this.#captured.set(stream, this.#graphs.push([]));
        return this.#driver.after(() => captures.begin(stream));
      },
      cuStreamEndCapture: (stream: number, out: number) => {
        const nodes = captures.end(stream);
        if (typeof nodes === 'number') return nodes;
        const graph = this.#captured.get(stream)!;
        this.#captured.delete(stream);
        this.#graphs[graph - 1] = nodes;
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
        const { ends } = captures.of(stream) ?? {};
        giveInt(status, ends ? 1 : 0);
        giveHandle(graph, ends ? this.#captured.get(captures.originOf(stream)!)! : 0);
        giveHandle(count, ends?.length ?? 0);
        ends?.forEach((node, i) => this.#ends.writeInt64(8 * i, this.#handleOf(node)));
        return giveHandle(dependencies, this.#ends.address);
      },
    };
  }

  #launches() {
    const { queues } = this.#driver;
    return {
      cuGraphInstantiate: (out: number, graph: number) => giveHandle(out, graph),
      cuGraphLaunch: (graph: number, stream: number) => {
        const nodes = this.#graphs[graph - 1]!;
        // What a node is given later is for later launches.
        const runs = drawOrder(nodes, () => queues.random()).map(({ run }) => run);
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
      cuGraphGetNodes: (graph: number, nodes: number, count: number) => {
        const own = this.#nodesOf(graph);
        if (nodes !== 0) own.forEach((node, i) => giveHandle(nodes + 8 * i, this.#handleOf(node)));
        return giveHandle(count, own.length);
      },
      cuGraphNodeGetType: (node: number, type: number) =>
        giveInt(type, this.#nodes[node - 1]!.run.launch ? kernelNode : fillNode),
      cuGraphKernelNodeGetParams: (node: number, parameters: number) =>
        give(parameters + gridOffset, new Int32Array(this.#nodes[node - 1]!.run.launch!)),
      cuGraphDestroy: () => 0,
      cuGraphExecDestroy: () => 0,
    };
  }

  /** Those of a graph, also while streams are captured into it. */
  #nodesOf(graph: number): readonly GraphNode[] {
    for (const [stream, own] of this.#captured)
      if (own === graph) return this.#driver.queues.captures.of(stream)!.nodes;
    return this.#graphs[graph - 1]!;
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
