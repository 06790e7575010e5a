import type { RatioPlot } from '@roofline/reports';
import { shapeParameters } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { ratioCharts, ratioRange, ratiosOf, type ComparedCell } from '../../../report/ratio-chart.ts';
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
    const [ratio, theirsMs] = [overFlash(fastest!)!, timeOf(fastest!)!.time.median];
    return { cell: fastest!.cell, theirsMs, oursMs: theirsMs * ratio.ratio, ratio, peer: nameOf(fastest!) };
  });
}

/** The comparison of one pass; none without a peer. */
export function besidePeer(passes: readonly TimedPass[], pass: Pass): RatioPlot[] {
  const cases = besideFastest(passes, pass);
  const peers = [...new Set(cases.map(({ peer }) => peer))];
  const [only = 'PyTorch'] = peers.length === 1 ? peers : [];
  return ratioCharts(
    {
      ...{ id: `${pass}-beside-pytorch`, title: `${passNames[pass].replace(/,$/, '')} beside PyTorch` },
      caption:
        `Median time over that of ${peers.length === 1 ? only : `the fastest of ${peers.join(', ')} at each shape`}, ` +
        'measured in turn; a pale band is the 95 % interval.',
      ...{ ours: 'Roofline', theirs: only, parameters: shapeParameters },
      named: ['sequence', 'headDimension', 'heads', 'batch', 'mask', 'dtype'],
    },
    cases,
  );
}

function leadPass(passes: readonly TimedPass[]): Pass | undefined {
  const asked = passesOf(passes);
  return byWorth.find((pass) => asked.includes(pass) && besideFastest(passes, pass).length > 0);
}

/** What a page begins with; null where no peer was measured. */
export function leadChart(passes: readonly TimedPass[]): RatioPlot | null {
  const pass = leadPass(passes);
  const [chart] = pass ? besidePeer(passes, pass) : [];
  return chart ? { ...chart, id: 'at-a-glance' } : null;
}

export function claim(passes: readonly TimedPass[]): string | null {
  const pass = leadPass(passes);
  if (!pass) return null;
  const ratios = ratiosOf(besideFastest(passes, pass));
  return `${passNames[pass]} takes ${ratioRange(ratios)} of the time of PyTorch's fastest`;
}
