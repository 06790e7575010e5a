import * as t from '../../../src/index.ts';
import type { DType, Shape } from '../../../src/index.ts';
import { type Drawing, type Drawn, isFloat, isSame } from './drawing.ts';
import type { Register } from './step-program.ts';

type Maker = (drawing: Drawing) => Drawn | null;

const names = ['neg', 'relu', 'silu', 'sigmoid', 'tanh', 'abs', 'sin', 'gelu', 'sign'] as const;

function unary(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick();
  if (!x) return null;
  const name = random.pick(names);
  return { operands: [x], shape: x.shape, text: ([a]) => `${name}(${a})`, run: ([a]) => t[name](a!) };
}

function scaled(drawing: Drawing): Drawn | null {
  const x = drawing.pick();
  if (!x) return null;
  const factor = drawing.random.pick([0.5, -1, 2, 3]);
  const name = drawing.random.pick(['mul', 'add', 'div', 'sub'] as const);
  return {
    operands: [x],
    shape: x.shape,
    text: ([a]) => `${name}(${a}, ${factor})`,
    run: ([a]) => t[name](a!, factor),
  };
}

/** On two operands that may be the same, or one of which may be a row, a column or an element, maybe of the other. */
function binary(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick();
  if (!x) return null;
  const name = random.pick(['add', 'sub', 'mul', 'maximum'] as const);
  if (random.chance(0.15))
    return {
      operands: [x],
      shape: x.shape,
      text: ([a]) => `${name}(${a}, ${a})`,
      run: ([a]) => t[name](a!, a!),
    };
  const part = random.chance(0.2) ? partOf(drawing, x) : null;
  const second = part ? x : drawing.pick((y) => isFloat(y) && broadcast(x.shape, y.shape) !== null);
  if (!second) return null;
  const [shape, dtype] = [broadcast(x.shape, part?.shape ?? second.shape)!, promoted(x, second)];
  const isTurned = random.chance(0.5);
  const [of, suffix] = [part?.of ?? ((y: t.Tensor) => y), part?.text ?? ''];
  return {
    operands: [x, second],
    shape,
    dtype,
    text: ([a, b]) => (isTurned ? `${name}(${b}${suffix}, ${a})` : `${name}(${a}, ${b}${suffix})`),
    run: ([a, b]) => (isTurned ? t[name](of(b!), a!) : t[name](a!, of(b!))),
  };
}

/** A row, a column, an element or the transpose of something. */
function partOf({ random }: Drawing, { shape }: Register) {
  if (shape.length !== 2) return null;
  const [rows, columns] = shape as readonly [number, number];
  const [row, column] = [random.integer(0, rows - 1), random.integer(0, columns - 1)];
  const parts = [
    { shape: [columns], text: `[${row}]`, of: (x: t.Tensor) => t.select(x, 0, row) },
    {
      shape: [rows, 1],
      text: `[:, ${column}:${column + 1}]`,
      of: (x: t.Tensor) => t.slice(x, 1, column, column + 1),
    },
    { shape: [], text: `[${row}][${column}]`, of: (x: t.Tensor) => t.select(t.select(x, 0, row), 0, column) },
  ];
  const turned = { shape: [columns, rows], text: '.T', of: (x: t.Tensor) => t.transpose(x) };
  return random.pick(rows === columns ? [...parts, turned] : parts);
}

/** With weights and biases that are parameters, other tensors, or rows of what is normalized. */
function norm(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick((each) => isFloat(each) && each.shape.length > 0);
  if (!x) return null;
  const columns = x.shape.at(-1)!;
  if (random.chance(0.12)) {
    const name = random.pick(['softmax', 'logSoftmax'] as const);
    return { operands: [x], shape: x.shape, text: ([a]) => `${name}(${a})`, run: ([a]) => t[name](a!) };
  }
  const factor = (isFit: (register: Register) => boolean = isFloat) => {
    const part = random.chance(0.2) && isFit(x) ? partOf(drawing, x) : null;
    if (part && isSame(part.shape, [columns])) return { register: x, ...part };
    const register = drawing.pick((each) => isFit(each) && isSame(each.shape, [columns]));
    return register && { register, text: '', of: (y: t.Tensor) => y };
  };
  const weight = factor();
  const bias = weight && factor(({ dtype }) => dtype === weight.register.dtype);
  if (!weight || !bias) return null;
  if (random.chance(0.35))
    return {
      operands: [x, weight.register, bias.register],
      shape: x.shape,
      text: ([a, b, c]) => `layerNorm(${a}, ${b}${weight.text}, ${c}${bias.text})`,
      run: ([a, b, c]) => t.layerNorm(a!, weight.of(b!), bias.of(c!)),
    };
  const dtype = random.chance(0.2) ? random.pick(['bfloat16', 'float16', 'float32'] as const) : x.dtype;
  return {
    operands: [x, weight.register],
    shape: x.shape,
    dtype,
    text: ([a, b]) => `rmsNorm(${a}, ${b}${weight.text}, 1e-5, ${dtype})`,
    run: ([a, b]) => t.rmsNorm(a!, weight.of(b!), 1e-5, { dtype }),
  };
}

function view(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick((each) => isFloat(each) && each.shape.length > 0);
  if (!x) return null;
  const [rank, size] = [x.shape.length, t.sizeOf(x.shape)];
  const dimension = random.integer(0, rank - 1);
  const length = x.shape[dimension]!;
  const start = random.integer(0, length - 1);
  const step = random.weighted([[4, 1], [1, 2]] as const); // prettier-ignore
  const end = random.integer(start + 1, length);
  const common = { operands: [x], isWritable: x.isWritable };
  const reshaped = random.pick<Shape>([[size], [1, ...x.shape], x.shape.toReversed()]);
  const replaced = (by: number) => x.shape.map((own, i) => (i === dimension ? by : own));
  const without = x.shape.filter((_, i) => i !== dimension);
  return random.pick<Drawn>([
    {
      ...common,
      shape: rank > 1 ? [...x.shape.slice(0, -2), ...x.shape.slice(-2).reverse()] : x.shape,
      text: ([a]) => (rank > 1 ? `transpose(${a})` : `view(${a})`),
      run: ([a]) => (rank > 1 ? t.transpose(a!) : t.view(a!, x.shape)),
    },
    {
      ...common,
      shape: replaced(Math.ceil((end - start) / step)),
      text: ([a]) => `slice(${a}, ${dimension}, ${start}, ${end}, ${step})`,
      run: ([a]) => t.slice(a!, dimension, start, end, step),
    },
    {
      ...common,
      shape: without,
      text: ([a]) => `select(${a}, ${dimension}, ${start})`,
      run: ([a]) => t.select(a!, dimension, start),
    },
    {
      ...common,
      shape: reshaped,
      text: ([a]) => `reshape(${a}, [${reshaped.join(', ')}])`,
      run: ([a]) => t.reshape(a!, reshaped),
    },
    {
      ...common,
      isWritable: false,
      shape: [2, ...x.shape],
      text: ([a]) => `expand(${a}, [${[2, ...x.shape].join(', ')}])`,
      run: ([a]) => t.expand(a!, [2, ...x.shape]),
    },
  ]);
}

function copied(drawing: Drawing): Drawn | null {
  const x = drawing.pick();
  if (!x) return null;
  return drawing.random.pick<Drawn>([
    { operands: [x], shape: x.shape, text: ([a]) => `copy(${a})`, run: ([a]) => t.copy(a!) },
    {
      operands: [x],
      shape: x.shape,
      isWritable: x.isWritable,
      text: ([a]) => `contiguous(${a})`,
      run: ([a]) => t.contiguous(a!),
    },
    {
      operands: [x],
      shape: x.shape,
      isWritable: x.isWritable,
      isTracked: false,
      text: ([a]) => `${a}.detach()`,
      run: ([a]) => a!.detach(),
    },
  ]);
}

function reduction(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick((each) => isFloat(each) && each.shape.length > 0);
  if (!x) return null;
  const name = random.pick(['sum', 'mean', 'max'] as const);
  const dims = random.integer(0, x.shape.length - 1);
  return {
    operands: [x],
    shape: x.shape.map((length, i) => (i === dims ? 1 : length)),
    text: ([a]) => `${name}(${a}, { dims: ${dims}, keepDims: true })`,
    run: ([a]) => t[name](a!, { dims, keepDims: true }),
  };
}

function product(drawing: Drawing): Drawn | null {
  const isWide = (each: Register) => each.dtype === 'float32' || each.dtype === 'float64';
  const isFit = drawing.hasLowProducts ? isFloat : isWide;
  const x = drawing.pick((each) => isFit(each) && each.shape.length === 2);
  if (!x) return null;
  const [rows, columns] = x.shape as readonly [number, number];
  const w = drawing.pick(
    (each) => each.dtype === x.dtype && each.shape.length === 2 && each.shape.includes(columns),
  );
  if (!w) return null;
  const isTransposed = w.shape[1] === columns;
  return {
    operands: [x, w],
    shape: [rows, isTransposed ? w.shape[0]! : w.shape[1]!],
    text: ([a, b]) => (isTransposed ? `linear(${a}, ${b})` : `matmul(${a}, ${b})`),
    run: ([a, b]) => (isTransposed ? t.linear(a!, b!) : t.matmul(a!, b!)),
  };
}

function lookup(drawing: Drawing): Drawn | null {
  const table = drawing.pick((each) => isFloat(each) && each.shape.length === 2);
  const ids = drawing.pick(({ dtype, name }) => dtype === 'int64' && name.startsWith('b'));
  // Indices are below the rows that all tables have.
  if (!table || !ids || table.shape[0]! < drawing.rows) return null;
  return {
    operands: [table, ids],
    shape: [...ids.shape, table.shape[1]!],
    text: ([a, b]) => `embedding(${a}, ${b})`,
    run: ([a, b]) => t.embedding(a!, b!),
  };
}

function cast(drawing: Drawing): Drawn | null {
  const x = drawing.pick();
  if (!x) return null;
  const dtype = drawing.random.pick(['float32', 'float32', 'float16', 'bfloat16', 'float64'] as const);
  return {
    operands: [x],
    shape: x.shape,
    dtype,
    isWritable: dtype !== x.dtype,
    text: ([a]) => `cast(${a}, ${dtype})`,
    run: ([a]) => t.cast(a!, dtype),
  };
}

function rotation(drawing: Drawing): Drawn | null {
  const x = drawing.pick((each) => isFloat(each) && each.shape.length >= 2 && each.shape.at(-1)! % 2 === 0);
  if (!x) return null;
  const [rows, columns] = x.shape.slice(-2) as [number, number];
  const cosine = drawing.pickLike([rows, columns / 2], 'float32');
  if (!cosine) return null;
  return {
    operands: [x, cosine],
    shape: x.shape,
    text: ([a, b]) => `rope(${a}, ${b}, ${b})`,
    run: ([a, b]) => t.rope(a!, b!.detach(), b!.detach()),
  };
}

function loss(drawing: Drawing): Drawn | null {
  const logits = drawing.pick(
    (each) =>
      isFloat(each) &&
      each.shape.length === 2 &&
      each.shape[0] === drawing.rows &&
      each.shape[1]! >= drawing.rows,
  );
  const targets = drawing.pick(({ dtype, name }) => dtype === 'int64' && name.startsWith('b'));
  if (!logits || !targets) return null;
  return {
    operands: [logits, targets],
    shape: [],
    text: ([a, b]) => `crossEntropy(${a}, ${b})`,
    run: ([a, b]) => t.crossEntropy(a!, b!),
  };
}

function joined(drawing: Drawing): Drawn | null {
  const x = drawing.pick((each) => isFloat(each) && each.shape.length > 0);
  const y = x && drawing.pickLike(x.shape, x.dtype);
  if (!x || !y) return null;
  const dimension = drawing.random.integer(0, x.shape.length - 1);
  return {
    operands: [x, y],
    shape: x.shape.map((length, i) => (i === dimension ? 2 * length : length)),
    text: ([a, b]) => `concat([${a}, ${b}], ${dimension})`,
    run: ([a, b]) => t.concat([a!, b!], dimension),
  };
}

function broadcast(a: Shape, b: Shape): Shape | null {
  const rank = Math.max(a.length, b.length);
  const result = Array.from({ length: rank }, (_, i) => {
    const [x, y] = [a[a.length - rank + i] ?? 1, b[b.length - rank + i] ?? 1];
    return x === y || y === 1 ? x : x === 1 ? y : -1;
  });
  return result.includes(-1) ? null : result;
}

function promoted(a: Register, b: Register): DType {
  if (a.dtype === b.dtype) return a.dtype;
  return [a.dtype, b.dtype].includes('float64') ? 'float64' : 'float32';
}

/** How often each kind is drawn. */
export const makers: readonly (readonly [number, Maker])[] = [
  [9, unary],
  [7, scaled],
  [22, binary],
  [18, norm],
  [12, view],
  [5, copied],
  [6, reduction],
  [7, product],
  [6, lookup],
  [6, cast],
  [4, rotation],
  [2, loss],
  [3, joined],
];
