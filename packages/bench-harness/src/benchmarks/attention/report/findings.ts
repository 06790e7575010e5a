import { formatBytes, formatRatio, type Block } from '@roofline/reports';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import { summarize } from '../../../measuring/statistics.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import { spreadNotes } from '../../../report/spread-notes.ts';
import { valuesInWords } from '../../../report/values-in-words.ts';
import { timeOf, type AttentionMeasurement, type MeasuredAttention } from './measured.ts';
import { compiledPasses } from './tables.ts';

type Cells = readonly AttentionMeasurement[];

/** Whether the ceilings can be trusted. */
export function roofFinding(cells: Cells): string[] {
  return beatenRoofSentence(
    measuredOf(cells).map((each) => ({
      ...{ name: each.name, dtype: each.cell.dtype, record: each.record },
      flopsPerSecond: Math.max(timeOf(each, 'forward')!.flopsPerSecond, timeOf(each, 'both')!.flopsPerSecond),
    })),
  );
}

/** At the longest sequence that both were measured at: how much faster, and how much less memory. */
export function besidePlainFindings(cells: Cells): string[] {
  const pairs = pairsBy(cells, 'attention', 'plain').filter(({ cell }) => cell.cell.execution === 'eager');
  return (['flash', 'tiled'] as const).flatMap((attention) => {
    const [longest] = pairs
      .filter(({ cell }) => cell.cell.attention === attention)
      .toSorted((a, b) => b.cell.cell.sequence - a.cell.cell.sequence);
    if (!longest) return [];
    const { cell: other, beside: plain } = longest;
    const speedUp = (pass: 'forward' | 'backward') =>
      `**${formatRatio(timeOf(plain, pass)!.time.median / timeOf(other, pass)!.time.median)}**`;
    const memory = ({ result }: MeasuredAttention) => formatBytes(result.memory.beforeBackwardBytes!);
    const { sequence, headDimension, dtype } = other.cell;
    return [
      `At sequence ${sequence}, d ${headDimension}, ${dtype}, ${attention} attention is ${speedUp('forward')} as fast as ` +
        `plain forward and ${speedUp('backward')} backward; before backward it holds **${memory(other)}** where plain ` +
        `holds **${memory(plain)}**.`,
    ];
  });
}

/** The least and the most time that compiled passes take of eager ones. */
export function compiledFindings(cells: Cells): string[] {
  const groups = Map.groupBy(compiledPasses(cells), ({ cell, pass }) => `${cell.attention} ${pass}`);
  return [...groups].map(([what, group]) => {
    const ratios = group.map(({ cell, eager, compiled }) => ({
      name: `sequence ${cell.sequence}, d ${cell.headDimension}`,
      value: ratioOf(compiled.deviceMs, eager.deviceMs),
    }));
    return `Compiled, ${what} takes ${valuesInWords(ratios, formatRatio)} the time of eager.`;
  });
}

function ratioOf(numerator: readonly number[], denominator: readonly number[]): number {
  return summarize(numerator).median / summarize(denominator).median;
}

/** Warns of passes whose times scatter, or were taken before they were warm. */
export function spreadOfPasses(cells: Cells): Block[] {
  return spreadNotes(
    measuredOf(cells).map(({ name, result: { forward, backward, both } }) => ({
      name,
      samplesMs: [forward, backward, both].flatMap((pass) => (pass ? [pass.deviceMs] : [])),
    })),
  );
}
