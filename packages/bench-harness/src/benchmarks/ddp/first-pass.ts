import {
  type ComputeOp,
  type DType,
  type Device,
  type Shape,
  type Tensor,
  applyOne,
  byteSize,
  formatShape,
  noGrad,
  observeOps,
  sizeOf,
  zeros,
} from '@roofline/tensor-core';
import { waitFor } from './rank-model.ts';

/** A collective as the first step made it, to be made again. */
interface SeenCall {
  readonly op: ComputeOp<never>;
  readonly attributes: unknown;
  readonly shape: Shape;
  readonly dtype: DType;
  /** Of its input or its output, whichever has more. */
  readonly bytes: number;
}

const collectives = new Set(['allReduce', 'allGather', 'reduceScatter', 'shift']);

/** The collectives between the beginnings of the first and the second pass. */
export class FirstPass {
  readonly #seen: SeenCall[] = [];
  readonly #device: Device;
  #passes = 0;
  #stop: () => void = () => {};

  constructor(device: Device) {
    this.#device = device;
  }

  /** Bytes of each call. */
  get bytes(): number[] {
    return this.#seen.map(({ bytes }) => bytes);
  }

  beginPass(): void {
    this.#passes++;
    if (this.#passes === 1) this.#stop = observeOps({ before: (...call) => this.#note(...call) });
    else if (this.#passes === 2) this.#stop();
  }

  #note(
    op: ComputeOp<never>,
    [input]: readonly Tensor[],
    outputs: readonly Tensor[],
    attributes: unknown,
  ): void {
    if (!collectives.has(op.name)) return;
    const { shape, dtype } = input!;
    const elements = Math.max(sizeOf(shape), ...outputs.map(({ size }) => size));
    this.#seen.push({ op, attributes, shape, dtype, bytes: elements * byteSize(dtype) });
  }

  /** Memory for all calls, and what makes them again with nothing alongside. */
  communication(): () => void {
    // One input of each kind: those of all calls would take what a step's activations take.
    const kindOf = ({ shape, dtype }: Pick<SeenCall, 'shape' | 'dtype'>) => `${dtype} ${formatShape(shape)}`;
    const kinds = new Map(this.#seen.map((call) => [kindOf(call), call]));
    const device = this.#device;
    const inputs = new Map(
      [...kinds].map(([kind, { shape, dtype }]) => [kind, zeros(shape, { device, dtype })]),
    );
    return () =>
      noGrad(() => {
        for (const call of this.#seen)
          waitFor(applyOne(call.op, [inputs.get(kindOf(call))!], call.attributes as never));
      });
  }
}
