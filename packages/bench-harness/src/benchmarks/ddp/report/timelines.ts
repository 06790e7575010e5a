import type { Timeline } from '@roofline/reports';
import { cellWords } from '../../../parameters/cell-names.ts';
import { measuredOf } from '../../../report/measurement.ts';
import type { KernelSpan } from '../../profile/kernel-spans.ts';
import { splitPass } from '../overlap.ts';
import { ddpCellParameters } from '../parameters.ts';
import type { ProfiledPass } from '../result.ts';
import type { DdpMeasurement } from './measured.ts';

type Profiled = Extract<ProfiledPass, { status: 'ok' }>;

/** The profiled pass of each cell: what each rank calculates, and below it its communication. */
export function passTimelines(cells: readonly DdpMeasurement[]): Timeline[] {
  return measuredOf(cells).flatMap(({ cell, name, result: { profiledPasses } }) => {
    const passes = profiledPasses.flatMap((pass, rank) => (pass.status === 'ok' ? [{ pass, rank }] : []));
    if (passes.length === 0) return [];
    const firstMs = Math.min(...passes.map(({ pass }) => pass.startMs));
    const slug = cellWords(ddpCellParameters, cell)
      .join(' ')
      .replace(/[^\w.]+/g, '-');
    return [
      {
        ...{ kind: 'timeline', id: `timeline-${slug}`, title: `A pass over time: ${cell.mode}` },
        caption: name,
        tracks: passes.flatMap(({ pass, rank }) => rankTracks(pass, rank, (pass.startMs - firstMs) * 1000)),
      },
    ];
  });
}

function rankTracks(pass: Profiled, rank: number, behindUs: number): Timeline['tracks'] {
  const { computation, communication } = splitPass(pass);
  const slices = (spans: readonly KernelSpan[], category: string) =>
    spans.map(({ name, startUs, durationUs }) => ({
      name,
      category,
      startUs: startUs + behindUs,
      durationUs,
    }));
  return [
    { name: `rank ${rank}`, slices: slices(computation, 'computation') },
    { name: 'communication', slices: slices(communication, 'communication') },
  ];
}
