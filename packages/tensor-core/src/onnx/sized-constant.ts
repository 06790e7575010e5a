import type { OnnxTensor } from './graph.ts';
import { type Term, fitPolynomial } from './size-polynomial.ts';

type Polynomial = readonly Term[];

/** How a constant follows from sizes: number by number, by counting, or as the lower triangle that a causal mask is. */
export type SizedConstant =
  | { readonly kind: 'numbers'; readonly elements: readonly Polynomial[] }
  | { readonly kind: 'range'; readonly start: number; readonly step: number; readonly length: Polynomial }
  | {
      readonly kind: 'triangle';
      readonly rows: Polynomial;
      readonly columns: Polynomial;
      /** Element (i, j) is true where j ≤ i + diagonal. */
      readonly diagonal: Polynomial;
    };

/** How the constant that is each of `tensors` at these sizes follows from those; null where no rule is known. */
export function sizedConstant(
  tensors: readonly OnnxTensor[],
  sizes: readonly (readonly number[])[],
): SizedConstant | null {
  const [{ dtype, shape }] = tensors as [OnnxTensor];
  const lists = tensors.map(({ data }) => Array.from(data as ArrayLike<number | bigint>, Number));
  const fit = (values: readonly number[]) => fitPolynomial(sizes, values);
  const lengths = (dimension: number) => fit(tensors.map((tensor) => tensor.shape[dimension]!));
  if (tensors.some((tensor) => tensor.shape.length !== shape.length)) return null;
  if (dtype === 'bool') return shape.length === 2 ? triangleOf(tensors, lists, fit, lengths) : null;
  if (dtype === 'float16' || dtype === 'bfloat16' || shape.length > 1) return null;
  return numbersOf(lists, fit) ?? rangeOf(lists, lengths);
}

type Fit = (values: readonly number[]) => Polynomial | null;
type Lengths = (dimension: number) => Polynomial | null;

function numbersOf(lists: readonly (readonly number[])[], fit: Fit): SizedConstant | null {
  if (lists.some(({ length }) => length !== lists[0]!.length)) return null;
  const elements = lists[0]!.map((_, i) => fit(lists.map((list) => list[i]!)));
  return elements.every((terms) => terms !== null) ? { kind: 'numbers', elements } : null;
}

function rangeOf(lists: readonly (readonly number[])[], lengths: Lengths): SizedConstant | null {
  const [start = 0, next = 0] = lists[0]!;
  const step = next - start;
  const length = lengths(0);
  const isRange = lists.every((list) => list.every((value, i) => value === start + step * i));
  return isRange && step !== 0 && length !== null ? { kind: 'range', start, step, length } : null;
}

function triangleOf(
  tensors: readonly OnnxTensor[],
  lists: readonly (readonly number[])[],
  fit: Fit,
  lengths: Lengths,
): SizedConstant | null {
  const widths = tensors.map(({ shape }) => shape[1]!);
  const diagonals = lists.map((list, sample) => list.slice(0, widths[sample]).filter(Boolean).length - 1);
  const isTriangle = lists.every((list, sample) =>
    list.every((value, place) => {
      const row = Math.floor(place / widths[sample]!);
      return Boolean(value) === place % widths[sample]! <= row + diagonals[sample]!;
    }),
  );
  const [rows, columns, diagonal] = [lengths(0), lengths(1), fit(diagonals)];
  if (!isTriangle || rows === null || columns === null || diagonal === null) return null;
  return { kind: 'triangle', rows, columns, diagonal };
}
