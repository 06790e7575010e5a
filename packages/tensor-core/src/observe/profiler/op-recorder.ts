import type { TensorSpec } from '../../base/memory-view.ts';
import { type Observer, observeOps } from '../../op/observers.ts';
import type { Replay, ReplayedCall, ReplayedOp } from '../../op/replay.ts';
import type { OperandLayout } from '../../op/operand-layout.ts';
import type { Device } from '../../tensor/device.ts';
import { type DType, byteSize } from '../../base/dtype.ts';
import type { ComputeOp } from '../../op/op.ts';
import { type OpenRange, currentOpenRange } from '../../tensor/ranges/range.ts';
import { ReopenedRanges } from '../../tensor/ranges/reopened-ranges.ts';
import type { Shape } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';

/** A launch of a graph: the index of its first call, and how many of its nodes each of its calls is. */
export interface GraphLaunch {
  readonly name: string;
  readonly firstCall: number;
  readonly nodes: readonly number[];
}

/**
 * One call of an op. On the CPU the op runs between the two times; on a GPU it is queued between them. The calls of a graph
 * are queued at once: its launch is divided equally among them.
 */
export interface OpCall {
  readonly op: ComputeOp<never>;
  readonly attributes: unknown;
  readonly deviceType: 'cpu' | 'cuda';
  readonly deviceLabel: string;
  readonly inputs: readonly OperandLayout[];
  readonly outputs: readonly TensorSpec[];
  /** For a fused call the ops that it replaces; else empty. */
  readonly members: readonly ReplayedOp[];
  /** The graph that it is part of, if any. */
  readonly graph: GraphLaunch | null;
  /** Whether it ran on a branch of that graph. */
  readonly isBeside: boolean;
  /** The innermost open range. */
  readonly range: OpenRange | null;
  /** Bytes of tensors on the device when the op began, its outputs included. */
  readonly allocatedBytes: number;
  readonly startMs: number;
  readonly endMs: number;
}

/** A graph as it was launched. */
interface Launch {
  readonly replay: Replay;
  /** How many ops outside of graphs had run before it. */
  readonly opsBefore: number;
  readonly outerRange: OpenRange | null;
  readonly allocatedBytes: number;
  readonly startMs: number;
  endMs: number;
}

/**
 * Records every op and its range between `start` and `stop`, in lists of plain values rather than an object for each call and
 * operand: recording must not slow down the host, for which a GPU may be waiting.
 */
export class OpRecorder implements Observer {
  readonly #ops: ComputeOp<never>[] = [];
  readonly #attributes: unknown[] = [];
  readonly #devices: Device[] = [];
  readonly #ranges: (OpenRange | null)[] = [];
  readonly #allocatedBytes: number[] = [];
  readonly #startMs: number[] = [];
  readonly #endMs: number[] = [];
  /** Five values for each input, followed by two for each output. */
  readonly #operands: (Shape | DType | number)[] = [];
  readonly #inputCounts: number[] = [];
  readonly #outputCounts: number[] = [];
  readonly #launches: Launch[] = [];
  #stopObserving = () => {};

  start(): void {
    this.#stopObserving = observeOps(this);
  }

  stop(): void {
    this.#stopObserving();
  }

  before(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    const { device } = inputs[0]!;
    this.#ops.push(op);
    this.#attributes.push(attributes);
    this.#devices.push(device);
    this.#ranges.push(currentOpenRange());
    this.#allocatedBytes.push(device.allocatedBytes);
    this.#inputCounts.push(inputs.length);
    this.#outputCounts.push(outputs.length);
    const operands = this.#operands;
    for (let i = 0; i < inputs.length; i++) {
      const { shape, dtype, strides, offset, storage } = inputs[i]!;
      operands.push(shape, dtype, strides, offset, storage.byteLength);
    }
    for (let i = 0; i < outputs.length; i++) operands.push(outputs[i]!.shape, outputs[i]!.dtype);
    // Last, so that the time starts when the op does.
    this.#startMs.push(performance.now());
  }

  after(_: ComputeOp<never>, failed: boolean): void {
    if (failed) this.#forgetLast();
    else this.#endMs.push(performance.now());
  }

  beforeReplay(replay: Replay): void {
    this.#launches.push({
      replay,
      opsBefore: this.#endMs.length,
      outerRange: currentOpenRange(),
      allocatedBytes: replay.device.allocatedBytes,
      startMs: performance.now(),
      endMs: 0,
    });
  }

  afterReplay(_: Replay, failed: boolean): void {
    if (failed) this.#launches.pop();
    else this.#launches.at(-1)!.endMs = performance.now();
  }

  /** An op that threw has no time; what is profiled may have caught the error and gone on. */
  #forgetLast(): void {
    if (this.#ops.length === this.#endMs.length) return;
    this.#operands.length -= 5 * this.#inputCounts.pop()! + 2 * this.#outputCounts.pop()!;
    const finished = this.#endMs.length;
    this.#ops.length = finished;
    this.#attributes.length = finished;
    this.#devices.length = finished;
    this.#ranges.length = finished;
    this.#allocatedBytes.length = finished;
    this.#startMs.length = finished;
  }

  /** What was recorded, in order. An op that threw is left out. */
  calls(): OpCall[] {
    const calls: OpCall[] = [];
    const launches = [...this.#launches];
    const addLaunchesUpTo = (opsBefore: number) => {
      while (launches[0] && launches[0].opsBefore <= opsBefore)
        calls.push(...callsOf(launches.shift()!, calls.length));
    };
    this.#ownCalls().forEach((call, i) => {
      addLaunchesUpTo(i);
      calls.push(call);
    });
    addLaunchesUpTo(Infinity);
    return calls;
  }

  /** The calls of ops outside of graphs. */
  #ownCalls(): OpCall[] {
    let at = 0;
    const next = <T>() => this.#operands[at++] as T;
    const spec = (): TensorSpec => ({ shape: next<Shape>(), dtype: next<DType>() });
    const layout = (): OperandLayout => {
      const { shape, dtype } = spec();
      const [strides, offset, byteLength] = [next<Shape>(), next<number>(), next<number>()];
      return { shape, strides, offset, dtype, storageSize: Math.floor(byteLength / byteSize(dtype)) };
    };
    return this.#endMs.map((endMs, call) => ({
      op: this.#ops[call]!,
      attributes: this.#attributes[call],
      deviceType: this.#devices[call]!.type,
      deviceLabel: this.#devices[call]!.label,
      inputs: Array.from({ length: this.#inputCounts[call]! }, layout),
      outputs: Array.from({ length: this.#outputCounts[call]! }, spec),
      members: [],
      graph: null,
      isBeside: false,
      range: this.#ranges[call]!,
      allocatedBytes: this.#allocatedBytes[call]!,
      startMs: this.#startMs[call]!,
      endMs,
    }));
  }
}

/** The calls of a graph, the first of them with the index `firstCall`. */
function callsOf(
  { replay, outerRange, allocatedBytes, startMs, endMs }: Launch,
  firstCall: number,
): OpCall[] {
  const { name, device, calls } = replay;
  const graph: GraphLaunch = { name, firstCall, nodes: calls.map(({ nodes }) => nodes) };
  const callMs = (endMs - startMs) / calls.length;
  const ranges = new ReopenedRanges();
  return calls.map(({ op, attributes, inputs, outputs, range, members, isBeside }: ReplayedCall, i) => ({
    ...{ op, attributes, inputs, outputs, members, graph, isBeside, allocatedBytes },
    deviceType: device.type,
    deviceLabel: device.label,
    range: ranges.below(outerRange, range),
    startMs: startMs + i * callMs,
    endMs: startMs + (i + 1) * callMs,
  }));
}
