import { describe, expect, it } from 'vitest';
import * as t from '../../src/index.ts';
import type { ComputeOp, DType, Shape, Tensor } from '../../src/index.ts';
import { relativeError, sample, tensorOf, unitRoundoff } from './support/samples.ts';
import type { OpenDevice } from './support/vector-jacobian.ts';

/** Makes the operand that a case asks for: of that shape, laid out and filled as the test needs it. */
type Make = (shape: Shape, dtype?: DType) => Tensor;

/** A public function of one fused op. */
interface FusedCase {
  readonly name: string;
  /** Operands for rows of `columns` elements. Those not made by `make` are ordinary. */
  readonly operands: (rows: number, columns: number, make: Make, plain: Make) => Tensor[];
  readonly fn: (...operands: Tensor[]) => Tensor;
  /** Whether it may be given rows without elements. */
  readonly ofNothing?: false;
  /** Whether rows may be without elements: ONNX Runtime's norms refuse them. */
  readonly ofEmptyRows?: false;
}

const matrix: FusedCase['operands'] = (rows, columns, make) => [make([rows, columns])];

/** Targets or ids: 0, 1... below `count`, the one in the middle being `odd`. */
const indices = (size: number, count: number, odd: number, device: t.Device): Tensor => {
  const values = Array.from({ length: size }, (_, i) =>
    i === size >> 1 ? odd : (3 * i) % Math.max(1, count),
  );
  return tensorOf(values, [size], 'int64', device);
};

const cases: readonly FusedCase[] = [
  { name: 'sigmoid', operands: matrix, fn: (x) => t.sigmoid(x!) },
  { name: 'silu', operands: matrix, fn: (x) => t.silu(x!) },
  { name: 'gelu', operands: matrix, fn: (x) => t.gelu(x!) },
  { name: 'gelu by tanh', operands: matrix, fn: (x) => t.gelu(x!, { approximate: 'tanh' }) },
  { name: 'softmax', operands: matrix, fn: (x) => t.softmax(x!) },
  { name: 'causal softmax', operands: matrix, fn: (x) => t.softmax(x!, -1, { causal: true }) },
  { name: 'logSoftmax', operands: matrix, fn: (x) => t.logSoftmax(x!) },
  { name: 'tril', operands: matrix, fn: (x) => t.tril(x!, -1) },
  { name: 'causalMask', operands: matrix, fn: (x) => t.causalMask(x!) },
  {
    name: 'swiglu',
    operands: (rows, columns, make, plain) => [make([rows, columns]), plain([rows, columns])],
    fn: (a, b) => t.swiglu(a!, b!),
  },
  {
    ofEmptyRows: false,
    name: 'rmsNorm',
    operands: (rows, columns, make, plain) => [make([rows, columns]), plain([columns])],
    fn: (x, weight) => t.rmsNorm(x!, weight!),
  },
  {
    ofEmptyRows: false,
    name: 'layerNorm',
    operands: (rows, columns, make, plain) => [make([rows, columns]), plain([columns]), plain([columns])],
    fn: (x, weight, bias) => t.layerNorm(x!, weight!, bias!),
  },
  {
    name: 'crossEntropy',
    operands: (rows, columns, make) => {
      const logits = make([rows, columns]);
      return [logits, indices(rows, columns, -100, logits.device)];
    },
    fn: (logits, targets) => t.crossEntropy(logits!, targets!),
    ofNothing: false,
  },
  {
    name: 'rope',
    operands: (rows, columns, make, plain) => {
      const table: Shape = [rows, columns / 2];
      return [make([rows, columns]), plain(table, 'float32').detach(), plain(table, 'float32').detach()];
    },
    fn: (x, cosine, sine) => t.rope(x!, cosine!, sine!),
  },
  {
    name: 'embedding',
    operands: (rows, columns, make) => {
      const weight = make([rows, columns]);
      return [weight, indices(2 * rows, rows, 0, weight.device)];
    },
    fn: (weight, ids) => t.embedding(weight!, ids!),
  },
];

/** The layout and the contents of the operands that a case is about. */
interface Variant {
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly make: (shape: Shape, dtype: DType, device: t.Device) => Tensor;
}

const drawn = (shape: Shape, dtype: DType, device: t.Device, seed = 201) =>
  sample(shape, { dtype, domain: [-3, 3], seed }, device);

/** A row of each kind, cut or repeated to `columns`; the first element is exceptional. */
const oddRows: readonly (readonly number[])[] = [
  [1, 2, -0.5, 0],
  [NaN, 1, 2, -3],
  [-Infinity, 1, 2, -3],
  [-Infinity, -Infinity, -Infinity, -Infinity],
  [Infinity, 1, 0, -1],
  [-0, 0, -0, 0],
  [-90, 60, 0.25, 1],
  [7, 7, 7, 7],
];

const variants: readonly Variant[] = [
  { name: 'contiguous', rows: 8, columns: 6, make: drawn },
  { name: 'long', rows: 3, columns: 1500, make: drawn },
  {
    name: 'transposed',
    rows: 6,
    columns: 4,
    make: (shape, dtype, device) => t.transpose(drawn([...shape].reverse(), dtype, device)),
  },
  {
    name: 'sliced',
    rows: 5,
    columns: 4,
    make: (shape, dtype, device) =>
      t.slice(drawn([...shape.slice(0, -1), 2 * shape.at(-1)! + 1], dtype, device), -1, 1, undefined, 2),
  },
  {
    name: 'expanded',
    rows: 5,
    columns: 8,
    make: (shape, dtype, device) => t.expand(drawn(shape.slice(-1), dtype, device), shape),
  },
  { name: 'without rows', rows: 0, columns: 4, make: drawn },
  { name: 'without columns', rows: 3, columns: 0, make: drawn },
  {
    name: 'special',
    rows: oddRows.length,
    columns: 4,
    make: (shape, dtype, device) =>
      tensorOf(
        oddRows.slice(0, shape[0]).flatMap((row) => row.slice(0, shape[1])),
        shape,
        dtype,
        device,
      ),
  },
];

interface Attempt {
  readonly values: number[];
  readonly gradients: number[][];
  /** How many ops ran, each of which rounds. */
  readonly ops: number;
}

/** Values, and gradients of the floating-point leaves among the operands. */
function attempt(fn: (...operands: Tensor[]) => Tensor, operands: readonly Tensor[]): Attempt {
  let ops = 0;
  const stop = t.observeOps({ before: () => void ops++ });
  const result = t.scope(() => {
    const leaves = operands.map((x) => (t.isFloatingPoint(x.dtype) ? x.detach().requiresGrad_() : x));
    const y = fn(...leaves);
    y.backward(sample(y.shape, { dtype: y.dtype, domain: [-1, 1], seed: 202 }, y.device));
    const gradients = leaves.flatMap(({ grad }) => (grad ? [grad.toFlatArray()] : []));
    return { values: y.toFlatArray(), gradients };
  });
  stop();
  return { ...result, ops };
}

type AnyOp = ComputeOp<never>;

/** The fused op that `fn` ran, and its reference with the attributes of that call. */
function referenceOf(name: string, fn: () => unknown): (...operands: Tensor[]) => Tensor {
  const fused: { op: AnyOp; attributes: unknown }[] = [];
  const stop = t.observeOps({
    before: (op, _inputs, _outputs, attributes) => {
      if (op.reference) fused.push({ op, attributes });
    },
  });
  t.scope(() => void fn());
  stop();
  if (fused.length !== 1) throw new Error(`${name}: ran ${fused.length} ops with a reference, not one.`);
  const { op, attributes } = fused[0]!;
  return (...operands) => op.reference!(operands, attributes as never)[0]!;
}

/** Every fused op on one device against the composition of smaller ops that it names. */
export function describeFused(open: OpenDevice): void {
  describe.each(cases)('$name', ({ name, operands, fn, ofNothing, ofEmptyRows }) => {
    const made = (variant: Variant, dtype: DType, device: t.Device) =>
      operands(
        variant.rows,
        variant.columns,
        (shape, own = dtype) => variant.make(shape, own, device),
        (shape, own = dtype) => drawn(shape, own, device, 203),
      );
    const tried = variants.filter(
      ({ rows, columns }) =>
        (ofNothing !== false || rows * columns > 0) && (ofEmptyRows !== false || columns > 0),
    );

    // The reference runs on the CPU, so that a GPU compiles nothing but the fused op.
    it.each(tried)('of what is $name equals its reference', (variant) => {
      t.scope(() => {
        const [here, cpu] = [open(), t.device('cpu')];
        const narrow = made(variant, 'float32', cpu);
        const reference = referenceOf(name, () => fn(...narrow));
        const inFloat32 = attempt(reference, narrow);
        // The tables of rope stay float32.
        const staysNarrow = (i: number) => narrow[i]!.dtype !== 'float32' || (name === 'rope' && i > 0);
        const wide = narrow.map((x, i) => (staysNarrow(i) ? x : t.cast(x, 'float64')));
        const exact = attempt(
          referenceOf(name, () => fn(...wide)),
          wide,
        );
        expectClose(attempt(fn, made(variant, 'float32', here)), exact, inFloat32, unitRoundoff.float32!);
        const inFloat64 = attempt(
          fn,
          wide.map((x) => t.toDevice(x, here)),
        );
        expectClose(inFloat64, exact, inFloat32, unitRoundoff.float64!);
      });
    });
  });
}

/**
 * Compares an attempt in a precision of that unit roundoff to the exact one: at most twice the error that the reference has in
 * float32, scaled to that precision, and one unit in the last place. Where the reference is lucky, as a single value may be,
 * its error counts as that of as many random roundings as it has ops.
 */
function expectClose(actual: Attempt, exact: Attempt, inFloat32: Attempt, roundoff: number): void {
  const list = ({ values, gradients }: Attempt) => [values, ...gradients];
  const [ours, expected, rounded] = [list(actual), list(exact), list(inFloat32)];
  expect(ours.length).toBe(expected.length);
  ours.forEach((values, i) => {
    const measured = relativeError(rounded[i]!, expected[i]!) / unitRoundoff.float32!;
    const own = Math.max(measured, Math.sqrt(inFloat32.ops)) * roundoff;
    // For float64 nothing is more exact than the reference, which has its own error.
    const bound = (roundoff === unitRoundoff.float64 ? 3 : 2) * own + 2 * roundoff;
    expect(relativeError(values, expected[i]!)).toBeLessThanOrEqual(bound);
  });
}
