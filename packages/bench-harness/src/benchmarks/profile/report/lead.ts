import type { Drawing } from '@roofline/reports';
import { ratioCharts, ratioRange, ratiosOf, type ComparedCell } from '../../../report/ratio-chart.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { profiledOf } from '../interpret.ts';
import type { Profiles } from './profile-table.ts';
import { headline } from './sections.ts';
import { kernelsBesidePeer } from './summary.ts';

function besidePeer(profiles: Profiles): ComparedCell[] {
  return profiles.flatMap((profile) => {
    const profiled = profiledOf(profile);
    const both = profiled && kernelsBesidePeer(profiled);
    return both ? [{ cell: profile.cell, ...both }] : [];
  });
}

/** What a page begins with: the kernels beside PyTorch's, else those of the heaviest cell under the roof. */
export function leadChart(profiles: Profiles): Drawing | null {
  const [chart] = ratioCharts(
    {
      ...{ id: 'at-a-glance', title: 'Kernels of a step beside PyTorch' },
      caption: 'Time of all kernels of a step, taken together, over that of eager PyTorch.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', parameters: stepParameters },
      named: ['size', 'dtype', 'context', 'batch', 'mode', 'attention', 'execution'],
    },
    besidePeer(profiles),
  );
  return chart ?? headline(profiles);
}

export function claim(profiles: Profiles): string | null {
  const ratios = ratiosOf(besidePeer(profiles));
  return ratios.length === 0
    ? null
    : `The kernels of a step take ${ratioRange(ratios)} of the time that eager PyTorch's take`;
}

/** What is eager and what compiled of the time of a step, where both were profiled. */
export function explainExecutions(profiles: Profiles): string[] {
  if (!profiles.some(({ cell }) => cell.execution !== 'eager')) return [];
  return [
    'An eager step launches a kernel or more for each op, and the device idles while the host prepares the next one. A ' +
      'compiled step is one program, in which a fused kernel stands for several ops; on a GPU it is replayed as one CUDA ' +
      'graph, so that the device hardly waits for the host.',
  ];
}
