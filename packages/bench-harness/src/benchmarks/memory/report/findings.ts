import { formatBytes, formatPercent, formatRatio } from '@roofline/reports';
import { canonicalJson } from '../../../records/json.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { ratioRange } from '../../../report/ratio-chart.ts';
import { stepNames } from '../../e2e/parameters.ts';
import { blockPerResidual, overheadRatio, type MeasuredMemory, type MemoryMeasurement } from './tables.ts';

type Cells = readonly MemoryMeasurement[];

function highest(cells: readonly MeasuredMemory[]): MeasuredMemory | undefined {
  return cells.toSorted((a, b) => b.peakBytes! - a.peakBytes!)[0];
}

/** The step that is reported in detail: with the highest peak of those with a backward pass, which have more to show. */
export function detailedOf(cells: Cells): MeasuredMemory | undefined {
  const measured = measuredOf(cells);
  return highest(measured.filter(({ cell }) => cell.mode !== 'forward')) ?? highest(measured);
}

/** The forward pass of the same model, context and dtype, to show next to the step. */
export function forwardBeside(cells: Cells, { cell }: MeasuredMemory): MeasuredMemory | undefined {
  if (cell.mode === 'forward') return undefined;
  const wanted = canonicalJson({ ...cell, mode: 'forward' });
  return measuredOf(cells).find((each) => canonicalJson(each.cell) === wanted);
}

export function peakFinding(cells: Cells): string[] {
  const most = highest(measuredOf(cells));
  if (!most) return [];
  const name = stepNames(cells).name(most.cell);
  const { peakAllocatedBytes, phases } = most.result;
  const top = phases.toSorted((a, b) => b.bytes - a.bytes)[0];
  const [first] = top?.live ?? [];
  const peak = `The highest peak is **${formatBytes(peakAllocatedBytes)}** (${name})`;
  if (!top || !first) return [`${peak}.`];
  const share = formatPercent(first.bytes / top.bytes);
  return [`${peak}, in the ${top.phase} phase; ${share} of it is ${first.what}.`];
}

export function savedFinding(cells: Cells): string[] {
  const detailed = detailedOf(cells);
  if (!detailed?.result.savedByBlock) return [];
  const { bytes, contributors } = detailed.result.savedByBlock;
  const [largest] = contributors;
  return [
    `One block saves **${formatBytes(bytes)}** for the backward pass, ${formatRatio(blockPerResidual(detailed.result)!)} the ` +
      `residual stream (${stepNames(cells).name(detailed.cell)}); ${formatPercent(largest!.bytes / bytes)} of it is one tensor for the ` +
      `gradient of \`${largest!.op}\`.`,
  ];
}

export function overheadFinding(cells: Cells): string[] {
  const ratios = measuredOf(cells).map(({ result }) => overheadRatio(result));
  if (ratios.length === 0) return [];
  return [`With recording on a step takes **${ratioRange(ratios)}** of its time with it off.`];
}
