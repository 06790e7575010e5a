import { formatNumber } from '@roofline/reports';
import { z } from 'zod';
import { parameter } from '../../../parameters/parameter.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { rangeInWords } from '../../../report/values-in-words.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { instrumentNames } from '../result.ts';
import { instrumentLabels } from './instruments.ts';
import { costOf, hostTime, instrumentsIn, measuredOps, type OverheadCells } from './measured.ts';
import { opPlot } from './ops.ts';

const parameters = {
  instrument: parameter(z.enum(instrumentNames), { words: (name) => instrumentLabels[name] }),
  ...stepParameters,
};

/** A step under each instrument compared with one without; where none was measured, what ops cost the host. */
export function lead(cells: OverheadCells): Lead | null {
  return instrumentLead(cells) ?? opLead(cells);
}

function instrumentLead(cells: OverheadCells): Lead | null {
  const measurements = instrumentsIn(cells);
  return ratioLead(
    {
      title: 'Steps under an instrument vs without',
      ...{
        ours: 'On',
        theirs: 'Off',
        parameters,
        named: ['instrument', 'size', 'dtype', 'context', 'batch'],
      },
      caption: 'Median device time of a step; a pale band is the 95 % interval.',
    },
    measurements.flatMap((each) => {
      const cost = costOf(each);
      const cell = { ...each.cell, instrument: each.instrument };
      return cost ? [{ cell, ours: cost.onMs, theirs: cost.offMs, ratio: cost.ratio }] : [];
    }),
    (range) => `Under an instrument a training step takes ${range} of its time without`,
  );
}

function opLead(cells: OverheadCells): Lead | null {
  const times = measuredOps(cells).map((op) => hostTime(op).median);
  if (times.length === 0) return null;
  const [chart] = opPlot(cells);
  return {
    claim: `An eager op costs the host ${rangeInWords(times, (time) => formatNumber(time, 3))} µs`,
    ...(chart && { chart }),
  };
}
