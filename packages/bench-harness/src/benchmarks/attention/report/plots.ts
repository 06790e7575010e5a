import type { Plot } from '@roofline/reports';
import { attentionKinds } from '../../../attention/kinds.ts';
import { shapePlots } from '../../../attention/shape-plots.ts';
import { memoryNeed } from '../memory-formula.ts';
import { attentionName } from '../parameters.ts';
import { timeOf, type AttentionMeasurement, type MeasuredAttention } from './measured.ts';

type Cells = readonly AttentionMeasurement[];

const mebibyte = 2 ** 20;

/** Forward and backward time against the sequence. */
export function timePlots(cells: Cells): Plot[] {
  return shapePlots<MeasuredAttention>(
    {
      ...{ id: 'time', title: 'Time against sequence', caption: 'Medians; both axes logarithmic.' },
      y: { label: 'Time', unit: 'ms', scale: 'log' },
      name: ({ cell }) => attentionName(cell),
      values: {
        forward: (each) => timeOf(each, 'forward')?.time.median,
        backward: (each) => timeOf(each, 'backward')?.time.median,
      },
    },
    byKind(cells),
  );
}

/** Memory in use before backward against the sequence, with what follows from the formula. */
export function memoryPlots(cells: Cells): Plot[] {
  const measured = {
    ...{ id: 'memory', title: 'Memory before backward against sequence' },
    caption: 'Both axes logarithmic: a square rises twice as steeply as what is linear.',
    y: { label: 'Memory', unit: 'MiB', scale: 'log' } as const,
    name: ({ cell }: AttentionMeasurement) => attentionName(cell),
  };
  // The formula has no gaps.
  const eager = byKind(cells)
    .filter(({ cell }) => cell.execution === 'eager')
    .map((each) => ({ ...each, outcome: { status: 'ok' as const } }));
  const bytes = ({ result }: MeasuredAttention) => {
    const { beforeBackwardBytes } = result.memory;
    return beforeBackwardBytes && beforeBackwardBytes / mebibyte;
  };
  const byFormula = shapePlots(
    { ...measured, values: { formula: ({ cell }) => memoryNeed(cell).beforeBackwardBytes / mebibyte } },
    eager,
  );
  const asMeasured = shapePlots<MeasuredAttention>(
    { ...measured, values: { measured: bytes } },
    byKind(cells),
  );
  return byFormula.map((plot) => ({
    ...plot,
    series: [...plot.series, ...(asMeasured.find(({ id }) => id === plot.id)?.series ?? [])],
  }));
}

function byKind(cells: Cells): MeasuredAttention[] {
  const kindOf = ({ cell }: AttentionMeasurement) => attentionKinds.indexOf(cell.attention);
  // Only those with a result are asked for values.
  return cells.toSorted((a, b) => kindOf(a) - kindOf(b)) as MeasuredAttention[];
}
