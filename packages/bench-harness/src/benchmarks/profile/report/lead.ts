import { formatPercent } from '@roofline/reports';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { rangeInWords } from '../../../report/values-in-words.ts';
import { profiledOf } from '../interpret.ts';
import type { Profiles } from './profile-table.ts';
import { headline } from './sections.ts';
import { stepTimes } from './step-times.ts';
import { kernelsBesidePeer } from './summary.ts';

function besidePeer(profiles: Profiles): ComparedCell[] {
  return profiles.flatMap((profile) => {
    const profiled = profiledOf(profile);
    const both = profiled && kernelsBesidePeer(profiled);
    return both ? [{ cell: profile.cell, ...both }] : [];
  });
}

/**
 * The kernels compared with PyTorch's, else how much of a step kernels take; and without a comparison to draw those of the heaviest
 * cell under the roof.
 */
export function lead(profiles: Profiles): Lead | null {
  const beside = ratioLead(
    {
      title: 'Kernels of a step vs PyTorch',
      caption: 'Time of all kernels of a step, taken together, over that of eager PyTorch.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', parameters: stepParameters },
      named: ['size', 'dtype', 'context', 'batch', 'mode', 'attention', 'execution'],
    },
    besidePeer(profiles),
    (range) => `The kernels of a step take ${range} of the time that eager PyTorch's take`,
  );
  const chart = beside?.chart ?? headline(profiles);
  const claim = beside?.claim ?? busyClaim(profiles);
  return { ...(claim && { claim }), ...(chart && { chart }) };
}

function busyClaim(profiles: Profiles): string | undefined {
  const idle = profiles.flatMap((profile) => {
    const profiled = profiledOf(profile);
    return (profiled && stepTimes(profiled).idleShare) ?? [];
  });
  if (idle.length === 0) return undefined;
  const shares = idle.map((share) => 1 - share);
  return `Kernels fill ${rangeInWords(shares, formatPercent)} of a step`;
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
