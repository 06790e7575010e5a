import type { RatioPlot } from '@roofline/reports';
import { shapeParameters } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { ratioCharts, type ComparedCell, type Comparison } from '../../../report/ratio-chart.ts';
import { measuredPasses, nameOf, overFlash, passesOf, timeOf, type TimedPass } from './measured.ts';

/** The fullest first. */
const byWorth: readonly Pass[] = ['both', 'forward', 'backward'];

export const passNames: Readonly<Record<Pass, string>> = {
  forward: 'Flash attention forward',
  backward: 'Flash attention backward',
  both: 'Flash attention, forward and backward,',
};

/** Our flash attention over the fastest of PyTorch's, shape by shape. */
function besideFastest(passes: readonly TimedPass[], pass: Pass): (ComparedCell & { peer: string })[] {
  const beside = measuredPasses(passes).filter((each) => each.pass === pass && overFlash(each) !== null);
  const byShape = Map.groupBy(beside, ({ record }) => record);
  return [...byShape.values()].map((group) => {
    const [fastest] = group.toSorted((a, b) => timeOf(a)!.time.median - timeOf(b)!.time.median);
    const [ratio, theirs] = [overFlash(fastest!)!, timeOf(fastest!)!.time.median];
    return { cell: fastest!.cell, theirs, ours: theirs * ratio.ratio, ratio, peer: nameOf(fastest!) };
  });
}

/** The comparison of one pass, and its cases; none without a peer. */
function comparisonOf(passes: readonly TimedPass[], pass: Pass): [Omit<Comparison, 'id'>, ComparedCell[]] {
  const cases = besideFastest(passes, pass);
  const peers = [...new Set(cases.map(({ peer }) => peer))];
  const [only = 'PyTorch'] = peers.length === 1 ? peers : [];
  const comparison = {
    title: `${passNames[pass].replace(/,$/, '')} vs PyTorch`,
    caption:
      `Median time over that of ${peers.length === 1 ? only : `the fastest of ${peers.join(', ')} at each shape`}, ` +
      'measured in turn; a pale band is the 95 % interval.',
    ...{ ours: 'Roofline', theirs: only, parameters: shapeParameters },
    named: ['sequence', 'headDimension', 'heads', 'batch', 'mask', 'dtype'],
  };
  return [comparison, cases];
}

/** The comparison of one pass; none without a peer. */
export function besidePeer(passes: readonly TimedPass[], pass: Pass): RatioPlot[] {
  const [comparison, cases] = comparisonOf(passes, pass);
  return ratioCharts({ ...comparison, id: `${pass}-beside-pytorch` }, cases);
}

/** Of the fullest pass that was compared with a peer; null where none was. */
export function lead(passes: readonly TimedPass[]): Lead | null {
  const asked = passesOf(passes);
  const leads = byWorth
    .filter((pass) => asked.includes(pass))
    .map((pass) =>
      ratioLead(
        ...comparisonOf(passes, pass),
        (range) => `${passNames[pass]} takes ${range} of the time of PyTorch's fastest`,
      ),
    );
  return leads.find((each) => each !== null) ?? null;
}
