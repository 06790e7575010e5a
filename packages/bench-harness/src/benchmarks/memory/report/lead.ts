import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import type { Comparison } from '../../../report/ratio-chart.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { aStep, leadSteps } from '../../e2e/report/lead.ts';
import { runsOpByOp, type MeasuredMemory, type MemoryMeasurement } from './tables.ts';

type Cells = readonly MemoryMeasurement[];
type Titles = Pick<Comparison, 'title' | 'theirs'>;
type Compared = MeasuredMemory & { readonly reference: number };

/** What a step is compared with that differs in one thing, the most telling first, and how the claim says it. */
const references = [
  [
    ...(['recompute', 'none'] as const),
    { title: 'Peak memory vs keeping all activations', theirs: 'Nothing made again' },
    'of one that keeps all of its activations',
  ],
  ['execution', 'eager', { title: 'Peak memory vs eager steps', theirs: 'Eager' }, 'of an eager one'],
  [
    ...(['attention', 'plain'] as const),
    { title: 'Peak memory vs plain attention', theirs: 'Plain attention' },
    'with plain attention',
  ],
  ['dtype', 'float32', { title: 'Peak memory vs float32', theirs: 'float32' }, 'in float32'],
] as const;

const named = ['size', 'context', 'batch', 'mode', 'dtype', 'attention', 'execution', 'recompute'];

/** The peak compared with that of an eager step, with plain attention or in float32; where all steps are alike, with their weights. */
export function lead(cells: Cells): Lead | null {
  for (const [key, reference, titles, words] of references) {
    const pairs = pairsBy(cells, key, reference).filter(
      ({ cell }) => key !== 'execution' || !runsOpByOp(cell),
    );
    const compared = pairs.map(({ cell, beside }) => ({ ...cell, reference: beside.peakBytes! }));
    const found = peakLead(compared, titles, `of that ${words}`);
    if (found) return found;
  }
  const alone = measuredOf(cells).map((each) => ({ ...each, reference: each.result.weightBytes }));
  return peakLead(alone, { title: 'Peak memory vs the weights', theirs: 'Weights' }, 'its weights');
}

function peakLead(cells: readonly Compared[], titles: Titles, words: string): Lead | null {
  const compared = leadSteps(cells);
  return ratioLead(
    {
      ...{ ...titles, ours: 'Peak', value: 'bytes', parameters: stepParameters, named },
      caption: 'Most bytes allocated at once in one step.',
    },
    compared.map(({ cell, peakBytes, reference }) => ({ cell, ours: peakBytes, theirs: reference })),
    (range) => `The peak of ${aStep(compared).toLowerCase()} is ${range} ${words}`,
  );
}
