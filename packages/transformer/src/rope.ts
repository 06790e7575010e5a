import {
  type Device,
  type DeviceSpec,
  ShapeError,
  type Tensor,
  device,
  fromTypedArray,
  keep,
  rope,
  scope,
  slice,
} from '@roofline/tensor-core';

export interface RotaryOptions {
  readonly headDimension: number;
  /** The longest sequence. */
  readonly contextLength: number;
  /** The base of the angles. Default 10000. */
  readonly theta?: number;
  readonly device?: DeviceSpec | Device;
}

interface Tables {
  readonly cos: Tensor;
  readonly sin: Tensor;
}

/**
 * Rotary position embedding (Su et al. 2021): the pair of features (2i, 2i+1) of a token at position t turns by
 * t · theta^(-2i / headDimension). Cosines and sines are kept in float32; one object serves all layers.
 */
export class RotaryEmbedding {
  readonly #contextLength: number;
  readonly #whole: Tables;
  readonly #byLength = new Map<number, Tables>();

  constructor({ headDimension, contextLength, theta = 10_000, device: spec = 'cpu' }: RotaryOptions) {
    const pairs = headDimension / 2;
    const table = (f: (angle: number) => number) => {
      const values = Float32Array.from({ length: contextLength * pairs }, (_, i) => {
        const [position, pair] = [Math.floor(i / pairs), i % pairs];
        return f(position * theta ** ((-2 * pair) / headDimension));
      });
      return keep(fromTypedArray(values, [contextLength, pairs], { device: device(spec) }));
    };
    this.#contextLength = contextLength;
    this.#whole = { cos: table(Math.cos), sin: table(Math.sin) };
  }

  /**
   * Turns x [..., T, headDimension] by the positions 0 to T - 1. Throws a ShapeError for sequences longer than
   * the context.
   */
  apply(x: Tensor): Tensor {
    const { cos, sin } = this.#tables(x.shape.at(-2)!);
    return rope(x, cos, sin);
  }

  // Rows of the whole tables: no memory of their own, but no op at each call either.
  #tables(length: number): Tables {
    if (length > this.#contextLength) {
      throw new ShapeError(
        `rope: a sequence of ${length} tokens is longer than the context of ${this.#contextLength}; shorten it, or ` +
          'build the model with a larger contextLength.',
      );
    }
    let tables = this.#byLength.get(length);
    if (!tables) {
      const rows = (table: Tensor) => scope(() => keep(slice(table, 0, 0, length)));
      tables = { cos: rows(this.#whole.cos), sin: rows(this.#whole.sin) };
      this.#byLength.set(length, tables);
    }
    return tables;
  }

  dispose(): void {
    for (const { cos, sin } of [this.#whole, ...this.#byLength.values()]) {
      cos.dispose();
      sin.dispose();
    }
    this.#byLength.clear();
  }
}
