import { formatBytes, formatRatio } from '@roofline/reports';
import { canonicalJson } from '../../../records/json.ts';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import { listSome, statusInWords, valuesInWords } from '../../../report/values-in-words.ts';
import { describeAttentionCell } from '../parameters.ts';
import { compiledAttentionTable } from './compiled-table.ts';
import type { AttentionMeasurement } from './interpret.ts';

type Measured = AttentionMeasurement & { measured: NonNullable<AttentionMeasurement['measured']> };

/** The findings, one sentence each, computed from the records. */
export function attentionSummary(measurements: readonly AttentionMeasurement[]): string[] {
  const measured = measurements.filter((each): each is Measured => each.measured !== null);
  return [
    countSentence(measurements),
    ...beatenRoofSentence(
      measured.map(({ cell, record, measured: { forward, both } }) => ({
        ...{ name: describeAttentionCell(cell), dtype: cell.dtype, record },
        flopsPerSecond: Math.max(forward.flopsPerSecond, both.flopsPerSecond),
      })),
    ),
    ...(['flash', 'tiled'] as const).flatMap((attention) => besidePlain(measured, attention)),
    ...compiledSentence(measurements),
    ...unmeasured(measurements),
  ];
}

function countSentence(measurements: readonly AttentionMeasurement[]): string {
  const device = measurements[0]!.record.environment.device.name;
  const count = measurements.filter(({ measured }) => measured !== null).length;
  const total = measurements.length;
  return `${count} of ${total} ${total === 1 ? 'cell' : 'cells'} measured on ${device}.`;
}

/** At the longest sequence that both were measured at: how much faster, and how much less memory. */
function besidePlain(measured: readonly Measured[], attention: 'flash' | 'tiled'): string[] {
  const shape = ({ cell }: Measured) => canonicalJson({ ...cell, attention: 'plain' });
  const plain = new Map(
    measured.filter(({ cell }) => cell.attention === 'plain').map((each) => [shape(each), each]),
  );
  const pairs = measured
    .filter(({ cell }) => cell.attention === attention && cell.execution === 'eager')
    .flatMap((other) => {
      const beside = plain.get(shape(other));
      return beside ? [{ other, beside }] : [];
    });
  const longest = pairs.toSorted((a, b) => b.other.cell.sequence - a.other.cell.sequence)[0];
  if (!longest) return [];
  const { other, beside } = longest;
  const speedUp = (pass: 'forward' | 'backward') =>
    `**${formatRatio(beside.measured[pass]!.device.median / other.measured[pass]!.device.median)}**`;
  const memory = ({ measured: { memory } }: Measured) => formatBytes(memory.beforeBackwardBytes!);
  const { sequence, headDimension, dtype } = other.cell;
  return [
    `At sequence ${sequence}, d ${headDimension}, ${dtype}, ${attention} attention is ${speedUp('forward')} as fast as ` +
      `plain forward and ${speedUp('backward')} backward; before backward it holds **${memory(other)}** where plain ` +
      `holds **${memory(beside)}**.`,
  ];
}

/** The least and the most time that compiled passes take of eager ones. */
function compiledSentence(measurements: readonly AttentionMeasurement[]): string[] {
  const rows = compiledAttentionTable(measurements)?.rows ?? [];
  return [...Map.groupBy(rows, ({ attention, pass }) => `${attention} ${pass}`)].map(([what, group]) => {
    const ratios = group.map(({ sequence, headDimension, ratio }) => ({
      name: `sequence ${sequence}, d ${headDimension}`,
      value: Number(ratio),
    }));
    return `Compiled, ${what} takes ${valuesInWords(ratios, formatRatio)} the time of eager.`;
  });
}

function unmeasured(measurements: readonly AttentionMeasurement[]): string[] {
  const cells = measurements.filter(({ measured }) => measured === null);
  if (cells.length === 0) return [];
  const names = cells.map(
    ({ cell, record }) => `${describeAttentionCell(cell)} (${statusInWords(record.status)})`,
  );
  return [`Not measured: ${listSome(names)}.`];
}
