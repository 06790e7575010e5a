import type { MemoryView } from '../../../base/memory-view.ts';
import type { OnnxLowering } from '../../../op/cpu-lowering.ts';
import { DeviceError } from '@roofline/cuda/host';
import type { ComputeOp } from '../../../op/op.ts';
import { ShapeError } from '../../../base/errors.ts';
import { formatShape } from '../../../base/shape.ts';
import type { BufferPool } from '../../../onnx/buffer-pool.ts';
import { lowerChunked } from './chunked-graph.ts';
import { ChunkedSession, checkChunkable } from './chunked-session.ts';
import { runHostLowering } from './host-lowering.ts';
import { lowerToGraph } from './op-graph.ts';
import { operandLayout } from '../../../op/operand-layout.ts';
import { OpSession } from './op-session.ts';
import { checkReadBeforeWritten } from './read-before-written.ts';
import { SessionCache } from './session-cache.ts';
import { callSignature, chunkedSignature } from './signature.ts';

/** Runs ops on the CPU according to their lowerings. */
export class OpRunner {
  readonly #pool: BufferPool;
  readonly #sessions = new SessionCache<OpSession>();
  readonly #chunkedSessions = new SessionCache<ChunkedSession>();

  constructor(pool: BufferPool) {
    this.#pool = pool;
  }

  run<A>(
    op: ComputeOp<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): void {
    if (op.cpu.kind === 'memory') {
      for (const input of inputs) if (!input.isContiguous) throw notContiguous(op.name, input);
      op.cpu.run(inputs, outputs, attributes);
      return;
    }
    if (outputs.length > 0 && outputs.every(({ size }) => size === 0)) return;
    const lowering = op.cpu;
    if (lowering.kind === 'host') return runHostLowering(op, lowering, inputs, outputs, attributes);
    try {
      if (lowering.chunked) this.#runInPieces(op, lowering, inputs, outputs, attributes);
      else this.#runWhole(op, lowering, inputs, outputs, attributes);
    } catch (error) {
      throw error instanceof DeviceError ? failure(op.name, inputs, error) : error;
    }
  }

  #runWhole<A>(
    op: ComputeOp<A>,
    lowering: OnnxLowering<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): void {
    const session = this.#sessions.get(callSignature(op, attributes, inputs, outputs), () => {
      const graph = lowerToGraph(op, lowering, inputs.map(operandLayout), outputs, attributes);
      if (lowering.overwrites) checkReadBeforeWritten(op, graph.graph);
      return new OpSession(this.#pool, graph, op.mutates, lowering.overwrites);
    });
    session.run(inputs, outputs, op.scalars?.(attributes));
  }

  #runInPieces<A>(
    op: ComputeOp<A>,
    lowering: OnnxLowering<A>,
    inputs: readonly MemoryView[],
    outputs: readonly MemoryView[],
    attributes: A,
  ): void {
    checkChunkable(op.name, [...inputs, ...outputs]);
    const { size } = outputs[0]!;
    const session = this.#chunkedSessions.get(
      chunkedSignature(op, attributes, inputs, outputs, size),
      () => new ChunkedSession(lowerChunked(op, lowering, inputs, outputs, attributes, size)),
    );
    session.run(inputs, outputs, op.scalars?.(attributes));
  }
}

function notContiguous(op: string, { shape, strides }: MemoryView): ShapeError {
  return new ShapeError(
    `${op}: an input ${formatShape(shape)} has the strides ${formatShape(strides)}; call contiguous() first.`,
  );
}

function failure(op: string, inputs: readonly MemoryView[], cause: DeviceError): DeviceError {
  const operands = inputs.map(({ shape, dtype }) => `${formatShape(shape)} ${dtype}`).join(', ');
  return new DeviceError(`${op} of ${operands}: ${cause.message}`, { cause });
}
