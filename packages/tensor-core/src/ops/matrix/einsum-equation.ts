import { RooflineError } from '@roofline/cuda/host';
import { ShapeError } from '../../base/errors.ts';
import { type Shape, formatShape } from '../../base/shape.ts';

/** The index of each dimension, of every operand and of the result. */
export interface Einsum {
  readonly operands: readonly (readonly string[])[];
  readonly output: readonly string[];
}

/**
 * Reads an equation such as `bij,bjk->bik` for operands of given shapes. Dimensions under an ellipsis get the indices
 * '...1' (the last), '...2' and so on. Throws a RooflineError (code EQUATION), or a ShapeError for operands that do
 * not fit.
 */
export function parseEinsum(equation: string, shapes: readonly Shape[]): Einsum {
  const fail = (reason: string): never => {
    throw new RooflineError('EQUATION', `einsum: "${equation}": ${reason}`);
  };
  const parts = equation.replaceAll(/\s/g, '').split('->');
  if (parts.length > 2) fail('there is more than one "->".');
  const terms = parts[0]!.split(',');
  if (terms.length !== shapes.length) {
    fail(`it has ${terms.length} operands, but ${shapes.length} tensors are given.`);
  }
  for (const term of [...terms, parts[1] ?? '']) {
    if (!/^[A-Za-z]*(\.\.\.)?[A-Za-z]*$/.test(term)) {
      fail(`"${term}" may hold letters, one for each dimension, and one ellipsis "...".`);
    }
  }
  const operands = terms.map((term, i) => indicesOf(equation, term, shapes[i]!));
  operands.forEach((indices, i) => {
    const repeated = indices.find((index, at) => indices.indexOf(index) !== at);
    if (repeated !== undefined) {
      fail(`the index ${repeated} stands twice in "${terms[i]}"; diagonals are not supported.`);
    }
  });
  const known = [...new Set(operands.flat())];
  const batch = known.filter((index) => index.startsWith('.')).sort((a, b) => rankOf(b) - rankOf(a));
  if (parts.length === 1) return { operands, output: [...batch, ...implicitOutput(operands)] };
  const output = expandEllipsis(parts[1]!, batch);
  output.forEach((index, at) => {
    if (!known.includes(index)) fail(`the result's index ${index} is in no operand.`);
    if (output.indexOf(index) !== at) fail(`the index ${index} stands twice in the result.`);
  });
  return { operands, output };
}

/** The indices of one operand's dimensions. */
function indicesOf(equation: string, term: string, shape: Shape): string[] {
  const letters = term.replace('...', '').length;
  const covered = shape.length - letters;
  if (covered < 0 || (covered > 0 && !term.includes('...'))) {
    throw new ShapeError(
      `einsum: "${equation}": "${term}" names ${letters} dimensions, but its operand is ${formatShape(shape)}.`,
    );
  }
  return expandEllipsis(
    term,
    Array.from({ length: covered }, (_, i) => `...${covered - i}`),
  );
}

function expandEllipsis(term: string, batch: readonly string[]): string[] {
  const [front, back] = term.split('...');
  return back === undefined ? [...term] : [...front!, ...batch, ...back];
}

/** Counted from the last dimension under an ellipsis. */
function rankOf(index: string): number {
  return Number(index.slice(3));
}

/** Without "->": the letters that occur once, in alphabetical order, capitals first. */
function implicitOutput(operands: Einsum['operands']): string[] {
  const letters = operands.flat().filter((index) => !index.startsWith('.'));
  return letters.filter((index) => letters.indexOf(index) === letters.lastIndexOf(index)).sort();
}
