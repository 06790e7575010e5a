import type { Plot } from '@roofline/reports';
import { cellWords } from '../parameters/cell-names.ts';
import type { RowItem } from '../report/declared-table.ts';
import { plotsOf, seriesOf, type SeriesOf } from '../report/series.ts';
import { isCausal, shapeParameters, type AttentionShape } from './shape.ts';

/** A cell of attention; without a number of heads there is one. */
type Shape = Omit<AttentionShape, 'heads'> & { readonly heads?: number };
type Item = RowItem & { readonly cell: Shape };

/** A kind of plot that shows items against their sequence, one for each shape but for that. */
export interface ShapePlot<I extends Item> extends Pick<Plot, 'caption' | 'y'>, Omit<SeriesOf<I>, 'x' | 'y'> {
  /** Before what names the shape: `time`, `Time against sequence`. */
  readonly id: string;
  readonly title: string;
  readonly values: SeriesOf<I>['y'];
  /** Bars take the sequence as categories; lines, the default, on a logarithm. */
  readonly marks?: 'bar';
  readonly references?: (items: readonly I[]) => Plot['references'];
}

/** Those of all shapes; where some have several sequences, of these alone. */
export function shapePlots<I extends Item>(declared: ShapePlot<I>, items: readonly I[]): Plot[] {
  const { id, title, caption, y, name, values, marks = 'line', references } = declared;
  const shapes = [...Map.groupBy(items, ({ cell }) => idOf(cell))];
  const isSweep = (group: readonly I[]) => new Set(group.map(({ cell }) => cell.sequence)).size > 1;
  const sweeps = shapes.filter(([, group]) => isSweep(group));
  return (sweeps.length > 0 ? sweeps : shapes).flatMap(([shape, group]) => {
    const ordered = group.toSorted((a, b) => a.cell.sequence - b.cell.sequence);
    const levels = references?.(ordered);
    return plotsOf({
      ...{ id: `${id}-${shape}`, title: `${title}: ${titleOf(group[0]!.cell)}`, marks, y },
      ...(caption !== undefined && { caption }),
      x: { label: 'Sequence', scale: marks === 'bar' ? 'category' : 'log' },
      series: seriesOf({ x: ({ cell }) => cell.sequence, y: values, ...(name && { name }) }, ordered),
      ...(levels && { references: levels }),
    });
  });
}

function idOf(cell: Shape): string {
  const { dtype, batch, heads, headDimension } = cell;
  const words = [dtype, `b${batch}`, ...(heads === undefined ? [] : [`h${heads}`]), `d${headDimension}`];
  return [...words, ...(isCausal(cell) ? [] : ['full'])].join('-');
}

function titleOf(cell: Shape): string {
  const keys = Object.keys(shapeParameters).filter((key) => key !== 'sequence');
  return cellWords(shapeParameters, cell, keys).join(', ');
}
