import * as t from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { type Drawing, type Drawn, isFloat, isSame } from './drawing.ts';
import type { Register } from './step-program.ts';

/** What passes look for, in one instruction each: separate ones would rarely combine. */
export const motifs: readonly ((drawing: Drawing) => Drawn | null)[] = [
  projections,
  projections,
  projections,
  tiedHead,
  turnedCopy,
  twoRotations,
  twoCaches,
  castLoss,
];

/** Some projections of one activation, by weights that are cast as autocast casts them, and what becomes of them. */
export function projections(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick((each) => isLow(each) && each.shape.length >= 2);
  if (!drawing.hasLowProducts || !x) return null;
  const columns = x.shape.at(-1)!;
  const isSquare = random.chance(0.7);
  const isWeight = ({ shape }: Register) =>
    isSquare ? isSame(shape, [columns, columns]) : shape.length === 2 && shape[1] === columns;
  const weights = Array.from({ length: random.integer(2, 3) }, () =>
    drawing.pick((each) => isFloat(each) && isWeight(each)),
  );
  if (!weights.every((each) => each !== null)) return null;
  const verbs = weights.map(() =>
    isSquare && random.chance(0.3) ? ('matmul' as const) : ('linear' as const),
  );
  const name = random.pick(['add', 'mul', 'sub'] as const);
  const rows = weights.map(({ shape }) => shape[0]!);
  const isAlike = rows.every((length) => length === rows[0]);
  const width = isAlike ? rows[0]! : rows.reduce((a, b) => a + b, 0);
  const products = (given: readonly string[]) =>
    verbs.map((verb, i) => `${verb}(${given[0]}, cast ${given[i + 1]})`);
  return {
    operands: [x, ...weights],
    shape: [...x.shape.slice(0, -1), width],
    text: (given) => `${isAlike ? name : 'concat'}(${products(given).join(', ')})`,
    run: ([a, ...given]) => {
      const made = verbs.map((verb, i) => t[verb](a!, t.cast(given[i]!, x.dtype)));
      return isAlike ? made.reduce((b, c) => t[name](b, c)) : t.concat(made, -1);
    },
  };
}

/** Rows of a table that also serves as the head after them. */
function tiedHead(drawing: Drawing): Drawn | null {
  const ids = drawing.pick(isIndices);
  const table = drawing.random.pick([...drawing.parameters, ...drawing.registers]);
  const isTable = isFloat(table) && table.shape.length === 2 && table.shape[0]! >= drawing.rows;
  const isProduct = drawing.hasLowProducts || !isLow(table);
  if (!ids || !isTable || !isProduct || ids.shape.length !== 1) return null;
  return {
    operands: [table, ids],
    shape: [ids.shape[0]!, table.shape[0]!],
    text: ([a, b]) => `linear(tanh(embedding(${a}, ${b})), ${a})`,
    run: ([a, b]) => t.linear(t.tanh(t.embedding(a!, b!)), a!),
  };
}

/** The result of something in another order, as attention needs its heads. */
function turnedCopy(drawing: Drawing): Drawn | null {
  const { random } = drawing;
  const x = drawing.pick((each) => isFloat(each) && each.shape.length === 2 && each.shape[1]! % 2 === 0);
  if (!x) return null;
  const [rows, columns] = x.shape as readonly [number, number];
  const verb = random.pick(['neg', 'silu', 'softmax', 'copy'] as const);
  const asHeads = random.chance(0.75);
  const turn = (y: Tensor) =>
    asHeads ? t.transpose(t.reshape(y, [rows, 2, columns / 2]), 0, 1) : t.transpose(y, 0, 1);
  return {
    operands: [x],
    shape: asHeads ? [2, rows, columns / 2] : [columns, rows],
    text: ([a]) => `contiguous(${verb}(${a})${asHeads ? ` as [${rows}, 2, ${columns / 2}]` : ''} transposed)`,
    run: ([a]) => t.contiguous(turn(t[verb](a!))),
  };
}

/** Of queries and keys, say. */
function twoRotations(drawing: Drawing): Drawn | null {
  const isFit = (each: Register) => isFloat(each) && each.shape.length >= 2 && each.shape.at(-1)! % 2 === 0;
  const x = drawing.pick(isFit);
  const y = x && drawing.pickLike(x.shape, x.dtype);
  const angles = x && drawing.pickLike([x.shape.at(-2)!, x.shape.at(-1)! / 2], 'float32');
  if (!x || !y || !angles) return null;
  const isChained = drawing.random.chance(0.2);
  return {
    operands: [x, y, angles],
    shape: x.shape,
    text: ([a, b, c]) => `mul(rope(${a}, ${c}, ${c}), rope(${isChained ? `rope(${a}...)` : b}, ${c}, ${c}))`,
    run: ([a, b, c]) => {
      const [turns, first] = [c!.detach(), t.rope(a!, c!.detach(), c!.detach())];
      return t.mul(first, t.rope(isChained ? first : b!, turns, turns));
    },
  };
}

/** Two writes to rows that one list names, as of keys and values. */
function twoCaches(drawing: Drawing): Drawn | null {
  const isFit = (each: Register) => isFloat(each) && each.shape.length === 2;
  const target = drawing.pickWritable(isFit);
  const other = target && drawing.pickLike(target.shape, target.dtype);
  const source = target && drawing.pickLike(target.shape, target.dtype);
  if (!target || !other?.isWritable || !source) return null;
  const rows = target.shape[0]!;
  return {
    operands: [target, other, source],
    text: ([a, b, c]) => `noGrad: indexCopyInPlace of ${a}, and of ${b}, from ${c} backwards`,
    run: ([a, b, c]) => {
      t.noGrad(() => {
        const index = t.arange(rows - 1, -1, -1, { dtype: 'int64', device: a!.device });
        t.indexCopyInPlace(a!, 0, index, c!);
        t.indexCopyInPlace(b!, 0, index, t.neg(c!));
      });
      return null;
    },
  };
}

/** A loss of logits that are cast for it, whose gradient is multiplied by 1 or by an element of something. */
function castLoss(drawing: Drawing): Drawn | null {
  const { random, rows } = drawing;
  const logits = drawing.pick(
    (each) =>
      isFloat(each) &&
      each.isTracked &&
      each.name.startsWith('r') &&
      each.shape.length === 2 &&
      each.shape[0] === rows &&
      each.shape[1]! >= rows,
  );
  const targets = drawing.pick((each) => isIndices(each) && each.shape.length === 1);
  if (!logits || !targets || drawing.isWithoutGrad) return null;
  const above = random.pick(['1', 'an element of the logits', 'the loss', '0.5']);
  return {
    operands: [logits, targets],
    shape: [],
    dtype: 'float32',
    isTracked: false,
    text: ([a, b]) => `backward of crossEntropy(cast(${a}, float32), ${b}) times ${above}`,
    run: ([a, b]) => {
      const wide = t.cast(a!, 'float32');
      const value = t.crossEntropy(wide, b!);
      if (above === '1') value.backward();
      else if (above === 'the loss') value.backward(t.copy(value.detach()));
      else if (above === '0.5') t.mul(value, 0.5).backward();
      else value.backward(t.select(t.select(wide.detach(), 0, 0), 0, 1 % wide.shape[1]!));
      return value.detach();
    },
  };
}

function isIndices({ dtype, name }: Register): boolean {
  return dtype === 'int64' && name.startsWith('b');
}

function isLow({ dtype }: Register): boolean {
  return dtype === 'float16' || dtype === 'bfloat16';
}
