import { type Shape, type Tensor, transpose } from '@roofline/tensor-core';

/**
 * How a tensor [batch, heads, sequence, head dimension] lies in memory: in this order, or with the heads of a token
 * side by side, as projections read and write them.
 */
export type HeadLayout = 'bhnd' | 'bnhd';

/** The layout that `x` is nearest to. */
export function headLayout({ strides }: Pick<Tensor, 'strides'>): HeadLayout {
  return strides[1]! < strides[2]! ? 'bnhd' : 'bhnd';
}

/** Lengths or strides in the order of memory, or from there back. */
export function storedDimensions([batch, heads, sequence, dimension]: Shape, layout: HeadLayout): Shape {
  return layout === 'bhnd'
    ? [batch!, heads!, sequence!, dimension!]
    : [batch!, sequence!, heads!, dimension!];
}

/** What is stored in a layout as [batch, heads, sequence, head dimension], or the other way round: a view. */
export function swapLayout(stored: Tensor, layout: HeadLayout): Tensor {
  return layout === 'bhnd' ? stored : transpose(stored, 1, 2);
}
