import { HostMemory } from '../native/host-memory.ts';
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
}

/** CUDA graphs of an emulated GPU: what a captured stream was given, as nodes that run one behind another. */
export class EmulatedGraphs {
  readonly #driver: GraphDriver;
  readonly #graphs: GraphNode[][] = [];
  readonly #nodes: GraphNode[] = [];
  readonly #nodesByWork = new Map<() => void, GraphNode>();
  /** Where a capture's last node is told. */
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
      cuStreamBeginCapture: (stream: number) => this.#driver.after(() => queues.beginCapture(stream)),
      cuStreamEndCapture: (stream: number, out: number) => {
        const nodes = queues.endCapture(stream);
        if (!nodes) return invalidValue;
        return giveHandle(out, this.#graphs.push(nodes.map((run) => this.#nodeOf(run))));
      },
      cuStreamGetCaptureInfo: (
        stream: number,
        status: number,
        _id: number,
        _graph: number,
        dependencies: number,
        _edges: number,
        count: number,
      ) => {
        const last = queues.capturedBy(stream)?.at(-1);
        giveInt(status, queues.capturedBy(stream) ? 1 : 0);
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
      cuGraphLaunch: (graph: number, stream: number) =>
        this.#driver.after(() =>
          queues.push(stream, () => {
            for (const node of this.#graphs[graph - 1]!) node.run();
          }),
        ),
      cuGraphExecKernelNodeSetParams: (_graph: number, node: number, parameters: number) =>
        this.#replaceLaunch(this.#nodes[node - 1]!, parameters),
      cuGraphGetNodes: (graph: number, _nodes: number, count: number) =>
        giveHandle(count, this.#graphs[graph - 1]!.length),
      cuGraphDestroy: () => 0,
      cuGraphExecDestroy: () => 0,
    };
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
