import { type OpObserver, observeOps } from '../apply.ts';
import { type OperandLayout, operandLayout } from '../cpu/op-graph.ts';
import type { ComputeOp, TensorSpec } from '../op.ts';
import { DeviceError } from '../errors.ts';
import { type OpenRange, currentOpenRange } from '../range.ts';
import type { Tensor } from '../tensor.ts';

/** One call of an op. On the CPU the op runs between the two times; on a GPU it is queued between them. */
export interface OpCall {
  readonly op: ComputeOp<never>;
  readonly attributes: unknown;
  readonly deviceType: 'cpu' | 'cuda';
  readonly deviceLabel: string;
  readonly inputs: readonly OperandLayout[];
  readonly outputs: readonly TensorSpec[];
  /** The innermost range that was open. */
  readonly range: OpenRange | null;
  /** What tensors held on the device when the op began, its outputs among them. */
  readonly allocatedBytes: number;
  readonly startMs: number;
  endMs: number;
}

/** Writes down every op and its range between `start` and `stop`. */
export class OpRecorder implements OpObserver {
  readonly calls: OpCall[] = [];
  readonly #mark: (call: number) => void;

  /** `mark` is told the index of each call that a GPU is about to get. */
  constructor(mark: (call: number) => void) {
    this.#mark = mark;
  }

  /** Throws a DeviceError when something else observes ops, such as a profile that is under way. */
  start(): void {
    const other = observeOps(this);
    if (other !== null) {
      observeOps(other);
      throw new DeviceError(
        'profile: ops are being observed already; end the profile that is under way before another begins.',
      );
    }
  }

  stop(): void {
    observeOps(null);
  }

  before(
    op: ComputeOp<never>,
    inputs: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    const { type, label, allocatedBytes } = inputs[0]!.device;
    if (type === 'cuda') this.#mark(this.calls.length);
    this.calls.push({
      op,
      attributes,
      deviceType: type,
      deviceLabel: label,
      inputs: inputs.map(operandLayout),
      outputs: outputs.map(({ shape, dtype }) => ({ shape, dtype })),
      range: currentOpenRange(),
      allocatedBytes,
      // Last, so that the time begins when the op does.
      startMs: performance.now(),
      endMs: 0,
    });
  }

  after(): void {
    this.calls.at(-1)!.endMs = performance.now();
  }
}
