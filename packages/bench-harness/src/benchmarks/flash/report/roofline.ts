import type { RooflinePlot, RooflinePoint } from '@roofline/reports';
import { cellNames } from '../../../parameters/cell-names.ts';
import { shapeParameters } from '../../../attention/shape.ts';
import { attentionWork, type Pass } from '../../../attention/work.ts';
import { ceilingLabel, deviceRoof } from '../../../report/device-roof.ts';
import { measuredPasses, nameOf, passesOf, timeOf, type MeasuredPass, type TimedPass } from './measured.ts';

/** All attentions under the roof of their dtype, a plot each, in the fullest pass that was asked for. */
export function attentionRooflines(passes: readonly TimedPass[]): RooflinePlot[] {
  const asked = passesOf(passes);
  const pass = asked.includes('both') ? 'both' : asked[0];
  const measured = measuredPasses(passes).filter((each) => each.pass === pass);
  return [...Map.groupBy(measured, ({ cell }) => cell.dtype).values()].flatMap((group) =>
    attentionRoofline(group, pass!),
  );
}

function attentionRoofline(group: readonly MeasuredPass[], pass: Pass): RooflinePlot[] {
  const { dtype } = group[0]!.cell;
  const { ceilings } = group[0]!.record;
  if (!ceilings || ceilings.matmulFlopsPerSecond[dtype] === undefined) return [];
  const names = cellNames(
    shapeParameters,
    group.map(({ cell }) => cell),
    ['sequence', 'headDimension', 'heads', 'batch', 'mask'],
  );
  const points = group.map((each): RooflinePoint => {
    const phases = attentionWork(each.cell, pass);
    return {
      ...{ name: names.name(each.cell), category: nameOf(each), ceiling: ceilingLabel(dtype) },
      flops: phases.reduce((sum, { flops }) => sum + flops, 0),
      bytes: phases.reduce((sum, { bytes }) => sum + bytes, 0),
      durationMs: timeOf(each)!.time.median,
    };
  });
  return [
    {
      ...{ kind: 'roofline', id: `roofline-${dtype}`, title: `Attention under the roof, ${dtype}` },
      caption:
        `A dot is an attention at one shape, ${pass === 'both' ? 'forward and backward' : pass}: its area is the median ` +
        'time. Bytes are those of operands and results alone, so its dot lies right of where its kernels do.',
      ...deviceRoof(ceilings, [dtype]),
      points,
    },
  ];
}
