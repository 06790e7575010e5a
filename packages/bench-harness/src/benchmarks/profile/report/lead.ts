import { formatPercent } from '@roofline/reports';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import type { ComparedCell } from '../../../report/ratio-chart.ts';
import { stepParameters } from '../../e2e/parameters.ts';
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
  const shares = profiles
    .flatMap((profile) => {
      const profiled = profiledOf(profile);
      return (profiled && stepTimes(profiled).idleShare) ?? [];
    })
    .map((idle) => 1 - idle)
    .sort((a, b) => a - b);
  if (shares.length === 0) return undefined;
  const [least, most] = [formatPercent(shares[0]!), formatPercent(shares.at(-1)!)];
  return `Kernels fill ${least === most ? least : `${least} to ${most}`} of a step`;
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
