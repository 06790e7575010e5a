import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { uniformStream } from '../../../../tooling/uniform-stream.ts';
import * as t from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { hostCompilerVersion } from '@roofline/cuda/testing';
import { openEmulatedDevice } from '../../src/testing.ts';
import { fuzzSettings } from './fuzz-settings.ts';
import { optionsOf } from './random-options.ts';

const { seed, programs, minutes } = fuzzSettings(5, 40);

const weightCount = 4;
const low = 'float16';

/** Lengths of activations, and of weights' rows and columns: aligned to what kernels read at once, and not. */
interface Size {
  readonly rows: number;
  readonly columns: number;
}
const rowCounts = [1, 3, 8, 16];
const columnCounts = [8, 16, 16, 24, 10, 64];

/** What programs read and write besides their argument. */
interface Memory {
  readonly size: Size;
  readonly weights: readonly Tensor[];
  readonly buffer: Tensor;
  readonly wide: Tensor;
}

type Step = (made: Tensor[], memory: Memory) => void;
/** Instructions on values made before, and weights. */
type Make = (x: Tensor, y: Tensor, weights: readonly Tensor[], memory: Memory) => Tensor;

/** Small numbers, so that sums of products stay exact in float16, however often they are rounded. */
const small = (x: Tensor) => t.clamp(x, { min: -2, max: 2 });
const project = (x: Tensor, weight: Tensor) => t.linear(x, t.cast(weight, low));
const heads = (x: Tensor, { rows, columns }: Size) => t.reshape(x, [rows, 2, columns / 2]);

const makers: readonly Make[] = [
  (x, _, [a, b, c]) => small(t.add(t.mul(project(x, a!), project(x, b!)), project(x, c!))),
  (x, _, [a, b]) => small(t.sub(project(x, a!), project(x, b!))),
  (x, y, [a]) => small(t.add(x, project(y, a!))),
  (x, y, [a, b]) => small(t.add(project(x, a!), project(y, b!))),
  (x, y, [a, b]) => small(t.add(t.matmul(x, t.cast(a!, low)), t.matmul(y, t.cast(b!, low)))),
  (x, _, [a], { buffer }) => small(t.cast(t.add(t.cast(project(x, a!), 'float32'), buffer), low)),
  (x, _, [a, b], { size }) => {
    const turned = t.transpose(t.add(heads(project(x, a!), size), heads(project(x, b!), size)), 0, 1);
    return small(t.reshape(t.contiguous(turned), [size.rows, size.columns]));
  },
  (x, y) => small(t.add(t.matmul(small(t.matmul(x, t.transpose(y))), y), x)),
  (x, y, [a, b], { size: { columns } }) => {
    const halves = [project(x, a!), project(y, b!)].map((z) => t.slice(z, 1, 0, columns / 2));
    return small(t.concat(halves, 1));
  },
];

/** These write, in place. */
const writers: readonly Make[] = [
  (x, _, [a]) => {
    t.copyInPlace(a!, t.neg(a!));
    return x;
  },
  (x, _, [a, b]) => {
    t.copyInPlace(t.slice(a!.detach(), 0, 0, 4), t.slice(t.copy(b!.detach()), 0, 4, 8));
    return x;
  },
  (x, _, [a], { buffer }) => {
    t.addInPlace(buffer, t.cast(project(x, a!), 'float32'));
    t.copyInPlace(buffer, small(buffer));
    return x;
  },
  (x, y, [a, b, c]) => {
    const sum = t.copy(x);
    t.addInPlace(sum, project(y, a!));
    const first = project(sum, b!);
    t.fillInPlace(t.slice(sum, 1, 2, 5), 0);
    return small(t.add(first, project(sum, c!)));
  },
  (x, _, [a, b], { wide, size: { columns } }) => {
    const [first, second] = [project(x, a!), project(x, b!)];
    t.copyInPlace(t.slice(wide, 1, 0, columns), first);
    t.addInPlace(t.slice(wide, 1, columns / 2, columns / 2 + columns), second);
    t.copyInPlace(wide, small(wide));
    return t.contiguous(t.slice(wide, 1, columns, 2 * columns));
  },
];

class Case {
  readonly #random: () => number;
  readonly #steps: readonly Step[];
  /** Whether it makes gradients, and then updates its weights with them. */
  readonly #trains: boolean;
  readonly #passes: number;
  readonly size: Size;

  constructor(caseSeed: number) {
    this.#random = uniformStream(caseSeed);
    this.size = {
      rows: rowCounts[this.#below(rowCounts.length)]!,
      columns: columnCounts[this.#below(columnCounts.length)]!,
    };
    this.#trains = this.#below(2) === 0;
    this.#passes = 1 + this.#below(2);
    const choices = this.#trains ? makers : [...makers, ...writers];
    this.#steps = Array.from({ length: 3 + this.#below(6) }, () => this.#step(choices));
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  #step(choices: readonly Make[]): Step {
    const make = choices[this.#below(choices.length)]!;
    const back = [this.#below(4), this.#below(4)];
    const places = Array.from({ length: 3 }, () => this.#below(weightCount));
    return (made, memory) => {
      const [x, y] = back.map((distance) => made[Math.max(0, made.length - 1 - distance)]!);
      made.push(
        make(
          x!,
          y!,
          places.map((place) => memory.weights[place]!),
          memory,
        ),
      );
    };
  }

  run(memory: Memory, x: Tensor): Tensor[] {
    return t.scope(() => {
      for (const weight of memory.weights) {
        weight.grad?.dispose();
        weight.grad = null;
      }
      const results = Array.from({ length: this.#passes }, () => this.#pass(memory, x));
      return results.map((result) => t.keep(result.detach()));
    });
  }

  #pass(memory: Memory, x: Tensor): Tensor {
    const run = () => {
      const made = [t.cast(x, low)];
      for (const step of this.#steps) step(made, memory);
      return t.cast(made.at(-1)!, 'float32');
    };
    if (!this.#trains) return t.noGrad(run);
    const result = run();
    if (result.requiresGrad) t.sum(t.mul(result, t.slice(memory.buffer, 0, 0, 1))).backward();
    t.noGrad(() => {
      for (const weight of memory.weights)
        if (weight.grad) t.copyInPlace(weight, t.clamp(t.add(weight, weight.grad), { min: -1, max: 1 }));
    });
    return result;
  }
}

describe.skipIf(hostCompilerVersion() === null)('random sums of products on an emulated GPU', () => {
  const device = openEmulatedDevice();
  const whole = (shape: readonly number[], step: number) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const values = [0, 1, 0, -1, 0, 0, 1];
    return t.fromTypedArray(
      Float32Array.from({ length: size }, (_, i) => values[(i * 31 + step * 17 + ((i * i) >> 2)) % 7]!),
      shape,
      { device },
    );
  };
  const makeMemory = (size: Size): Memory => ({
    size,
    weights: Array.from({ length: weightCount }, (_, i) =>
      whole([size.columns, size.columns], i).requiresGrad_(),
    ),
    buffer: whole([size.rows, size.columns], 9),
    wide: t.cast(whole([size.rows, 2 * size.columns], 10), low),
  });
  const told = (results: readonly Tensor[], { weights, buffer, wide }: Memory) =>
    [...results, ...weights, buffer, wide, ...weights.map(({ grad }) => grad)].map(
      (x) => x && (x.toFlatArray() as number[]),
    );
  /** Beyond it whole numbers are rounded in float16, in eager code after each op. */
  const exactUpTo = 2048;
  /** What `fn` gives, and the largest number that any of its ops makes: what cancels it may leave a rounding behind. */
  const withLargest = <T>(fn: () => T): [T, number] => {
    let largest = 0;
    let made: readonly Tensor[] = [];
    const end = t.observeOps({
      before: (_, _inputs, outputs) => void (made = outputs),
      after: () => {
        for (const x of made)
          if (t.isFloatingPoint(x.dtype))
            for (const value of x.toFlatArray() as number[]) largest = Math.max(largest, Math.abs(value));
      },
    });
    try {
      return [fn(), largest];
    } finally {
      end();
    }
  };

  it(`of small whole numbers, compiled, give the numbers of eager ones (seed ${seed}, ${programs} programs)`, () => {
    const end = performance.now() + minutes * 60_000;
    let drawn = 0;
    let [compared, merged, accumulated] = [0, 0, 0];
    const failures: string[] = [];
    for (; drawn < programs && performance.now() < end; drawn++) {
      const caseSeed = seed + drawn;
      t.scope(() => {
        const program = new Case(caseSeed);
        const { size } = program;
        const [eager, memory] = [makeMemory(size), makeMemory(size)];
        const compiled = t.compile(
          (x: Tensor) => program.run(memory, x),
          optionsOf({ seed: caseSeed }, device),
        );
        for (let call = 0; call < 4; call++) {
          const x = whole([size.rows, size.columns], 30 + call);
          const [expected, largest] = withLargest(() => told(program.run(eager, x), eager));
          const given = told(compiled(x), memory);
          if (largest > exactUpTo) break;
          compared++;
          if (!isDeepStrictEqual(given, expected)) failures.push(`seed ${caseSeed}: call ${call} differs`);
        }
        for (const { mergedProducts, accumulatedProducts } of compiled.explain()) {
          merged += mergedProducts;
          accumulated += accumulatedProducts;
        }
        compiled.dispose();
      });
    }
    expect(failures).toEqual([]);
    expect(compared).toBeGreaterThanOrEqual(drawn);
    if (drawn >= 40) expect(Math.min(merged, accumulated)).toBeGreaterThan(0);
  });
});
