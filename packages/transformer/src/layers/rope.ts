import {
  type Device,
  type DeviceSpec,
  ShapeError,
  type Tensor,
  checkCount,
  checkDevice,
  checkNumber,
  checkOptions,
  device,
  embedding,
  formatShape,
  fromTypedArray,
  keep,
  requireTensor,
  rope,
  scope,
  slice,
} from '@roofline/tensor-core';
import { sameShape } from '@roofline/tensor-core/kernel-api';
import { keepPart } from '../module/building.ts';
import { checkPositions } from './position-embedding.ts';
import { type RopeScaling, checkRopeScaling, ropeFrequencies } from './rope-scaling.ts';

/** Options of `RotaryEmbedding`. */
export interface RotaryOptions {
  readonly headDimension: number;
  /** The longest sequence. */
  readonly contextLength: number;
  /** The base of the angles. Default 10000. */
  readonly theta?: number;
  /** How positions of a shorter context are stretched. Default: not at all. */
  readonly scaling?: RopeScaling;
  readonly device?: DeviceSpec | Device;
}

type Tables = readonly [cos: Tensor, sin: Tensor];

/**
 * Rotary position embedding (Su et al. 2021): the pair of features (2i, 2i+1) of a token at position t turns by
 * t · theta^(-2i / headDimension), or less where `scaling` stretches the positions. Cosines and sines are kept in float32; one object
 * serves all layers.
 */
export class RotaryEmbedding {
  readonly #contextLength: number;
  readonly #headDimension: number;
  readonly #whole: Tables;
  readonly #byLength = new Map<number, Tables>();

  constructor(options: RotaryOptions) {
    checkOptions('RotaryEmbedding', options, [
      'headDimension',
      'contextLength',
      'theta',
      'scaling',
      'device',
    ]);
    const { headDimension, contextLength, theta = 10_000, scaling, device: spec = 'cpu' } = options;
    const isEven = (value: number) => Number.isSafeInteger(value) && value > 0 && value % 2 === 0;
    checkNumber('RotaryEmbedding', 'headDimension', headDimension, 'an even number of two or more', isEven);
    checkCount('RotaryEmbedding', 'contextLength', contextLength, 1);
    checkNumber(
      'RotaryEmbedding',
      'theta',
      theta,
      'positive and finite',
      (value) => value > 0 && value < Infinity,
    );
    if (scaling !== undefined) checkRopeScaling('RotaryEmbedding', scaling);
    checkDevice('RotaryEmbedding', spec);
    const pairs = headDimension / 2;
    const { frequencies, amplitude } = ropeFrequencies(headDimension, theta, scaling);
    const table = (f: (angle: number) => number) => {
      const values = Float32Array.from({ length: contextLength * pairs }, (_, i) => {
        const [position, pair] = [Math.floor(i / pairs), i % pairs];
        return amplitude * f(position * frequencies[pair]!);
      });
      return keepPart(fromTypedArray(values, [contextLength, pairs], { device: device(spec) }));
    };
    this.#contextLength = contextLength;
    this.#headDimension = headDimension;
    this.#whole = [table(Math.cos), table(Math.sin)];
  }

  /**
   * Turns x [..., T, headDimension] by the positions `start` to `start` + T - 1, or by those of a tensor, int32 or int64 [T].
   * Throws a ShapeError for another x, and for positions that are no whole numbers or lie outside the context, of a tensor
   * as `embedding` does.
   */
  apply(x: Tensor, start: number | Tensor = 0): Tensor {
    requireTensor('RotaryEmbedding.apply', x);
    const length = x.shape.at(-2);
    if (length === undefined || x.shape.at(-1) !== this.#headDimension) {
      throw new ShapeError(
        `RotaryEmbedding.apply: x ${formatShape(x.shape)} must be [..., T, ${this.#headDimension}]; build the embedding with the ` +
          'headDimension of its heads.',
      );
    }
    if (typeof start === 'object') {
      requireTensor('RotaryEmbedding.apply', start);
      if (!sameShape(start.shape, [length])) {
        throw new ShapeError(
          `RotaryEmbedding.apply: the positions ${formatShape(start.shape)} must be ${formatShape([length])}, one for each ` +
            `token of x ${formatShape(x.shape)}.`,
        );
      }
      return scope(() => rope(x, ...this.#rowsAt(start)));
    }
    checkPositions('RotaryEmbedding.apply', start, length, this.#contextLength);
    if (start > 0) return scope(() => rope(x, ...this.#rows(start, length)));
    return rope(x, ...this.#firstRows(length));
  }

  // Rows of the whole tables: no memory of their own, but no op at each call either.
  #firstRows(length: number): Tables {
    let tables = this.#byLength.get(length);
    if (!tables) {
      tables = scope(() => {
        const [cos, sin] = this.#rows(0, length);
        return [keep(cos), keep(sin)];
      });
      this.#byLength.set(length, tables);
    }
    return tables;
  }

  #rows(start: number, length: number): Tables {
    const [cos, sin] = this.#whole;
    return [slice(cos, 0, start, start + length), slice(sin, 0, start, start + length)];
  }

  #rowsAt(positions: Tensor): Tables {
    const [cos, sin] = this.#whole;
    return [embedding(cos, positions), embedding(sin, positions)];
  }

  dispose(): void {
    for (const table of [...this.#whole, ...[...this.#byLength.values()].flat()]) table.dispose();
    this.#byLength.clear();
  }
}
