import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { pairsBy } from '../../../report/measurement.ts';
import { ratioRange } from '../../../report/ratio-chart.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import { aStep, leadSteps } from '../../e2e/report/lead.ts';
import { cellsOf, measuredIn, type PrecisionCells } from './measured.ts';
import { lossPlot } from './plots.ts';

/** What a lower precision gains; else how far its gradients are off, compared with PyTorch's; else what it does to the loss. */
export function lead(cells: PrecisionCells): Lead | null {
  return speedLead(cells) ?? accuracyLead(cells) ?? lossLead(cells);
}

function speedLead(cells: PrecisionCells): Lead | null {
  const pairs = pairsBy(cellsOf('speed', cells), 'dtype', 'float32');
  const low = leadSteps(pairs.map(({ cell, beside }) => ({ ...cell, beside })));
  return ratioLead(
    {
      ...{ title: 'Steps in lower precision vs float32', ours: 'Autocast', theirs: 'float32' },
      caption: 'Median device time of a step; a pale band is the 95 % interval.',
      ...{ parameters: stepParameters, named: ['size', 'context', 'batch', 'mode', 'dtype', 'attention'] },
    },
    low.map(({ cell, time, samplesMs, beside }) => ({
      ...{ cell, ours: time!.median, theirs: beside.time!.median },
      ratio: ratioOfMedians(samplesMs, beside.samplesMs),
    })),
    (range) => `${aStep(low)} takes ${range} of the time of a float32 one`,
  );
}

function accuracyLead(cells: PrecisionCells): Lead | null {
  return ratioLead(
    {
      title: "Errors of gradients vs PyTorch's",
      caption: 'Distance of all gradients under autocast from those in float64, relative.',
      ...{ ours: 'Roofline', theirs: 'PyTorch', value: 'number', parameters: stepParameters },
      named: ['size', 'dtype', 'context', 'batch', 'attention', 'execution'],
    },
    measuredIn('accuracy', cells).map(({ cell, result: { ours, theirs } }) => ({
      ...{ cell, ours: ours.gradients, theirs: theirs.gradients },
    })),
    (range) => `Gradients under autocast have ${range} of the error of PyTorch's`,
  );
}

function lossLead(cells: PrecisionCells): Lead | null {
  const ends = measuredIn('loss', cells).map(({ cell, result }) => ({ cell, loss: result.losses.at(-1)! }));
  const exact = ends.find(({ cell }) => cell.dtype === 'float32');
  const ratios = ends.flatMap(({ cell, loss }) =>
    exact && cell.dtype !== 'float32' && loss / exact.loss > 0 ? [loss / exact.loss] : [],
  );
  if (ratios.length === 0) return null;
  const [chart] = lossPlot(cells);
  return {
    claim: `Training in lower precision ends at ${ratioRange(ratios)} of the loss of float32`,
    ...(chart && { chart }),
  };
}
