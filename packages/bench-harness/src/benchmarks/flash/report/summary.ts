import { formatDuration, formatNumber, formatPercent, formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import { describeShape } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import { listSome, statusInWords } from '../../../report/values-in-words.ts';
import { nameOf, type FlashMeasurement, type Measured } from './interpret.ts';

type MeasuredFlash = FlashMeasurement & { timed: NonNullable<FlashMeasurement['timed']>; measured: Measured };

/** The findings, one sentence each, computed from the records. */
export function flashSummary(measurements: readonly FlashMeasurement[]): string[] {
  const measured = measurements.filter(
    (each): each is MeasuredFlash => each.timed !== null && each.measured !== null,
  );
  const passes = [...new Set(measurements.map(({ pass }) => pass))];
  return [
    countSentence(measurements),
    ...beatenRoofSentence(
      measured.map(({ cell, record, pass, measured: { flopsPerSecond }, timed }) => ({
        ...{ name: `${nameOf(timed)}, ${words[pass]} (${describeShape(cell)})`, dtype: cell.dtype },
        ...{ flopsPerSecond, record },
      })),
    ),
    ...passes.flatMap((pass) => fastestSentence(measured, pass)),
    ...passes.flatMap((pass) => plainSentence(measured, pass)),
    ...passes.flatMap((pass) => peerSentence(measured, pass)),
    ...unmeasuredSentences(measurements),
  ];
}

function countSentence(measurements: readonly FlashMeasurement[]): string {
  const records = new Map(measurements.map(({ record }) => [record.key, record]));
  const device = measurements[0]!.record.environment.device.name;
  const count = [...records.values()].filter(({ status }) => status === 'ok').length;
  return `${count} of ${records.size} ${records.size === 1 ? 'cell' : 'cells'} measured on ${device}.`;
}

/** Where our flash attention comes closest to the roof. */
function fastestSentence(measured: readonly MeasuredFlash[], pass: Pass): string[] {
  const ours = measured
    .filter(
      ({ timed, ...each }) => each.pass === pass && timed.side === 'ours' && timed.attention === 'flash',
    )
    .toSorted((a, b) => b.measured.flopsPerSecond - a.measured.flopsPerSecond);
  const [best] = ours;
  if (!best) return [];
  const { flopsPerSecond, roofShare, medianMs } = best.measured;
  const share = roofShare === null ? '' : `, ${formatPercent(roofShare)} of the roof`;
  return [
    `Flash attention, ${words[pass]}, reaches at most **${formatNumber(flopsPerSecond / 1e12, 3)} TFLOP/s**${share}: ` +
      `**${formatDuration(medianMs)}** (${describeShape(best.cell)}).`,
  ];
}

function plainSentence(measured: readonly MeasuredFlash[], pass: Pass): string[] {
  const gains = measured
    .filter(
      ({ timed, ...each }) => each.pass === pass && timed.side === 'ours' && timed.attention === 'flash',
    )
    .flatMap((each) => each.measured.overPlain ?? []);
  if (gains.length === 0) return [];
  return [`Flash over plain attention, ${words[pass]}: ${meanAndRange(gains)} as fast.`];
}

/** Our flash attention's time over that of each of PyTorch's, named. */
function peerSentence(measured: readonly MeasuredFlash[], pass: Pass): string[] {
  const compared = measured.filter((each) => each.pass === pass && each.measured.ratio !== null);
  const groups = Map.groupBy(compared, ({ timed }) => nameOf(timed));
  if (groups.size === 0) return [];
  const told = [...groups].map(
    ([name, group]) => `${meanAndRange(group.map((each) => each.measured.ratio!.ratio))} the time of ${name}`,
  );
  return [`Flash attention, ${words[pass]}, takes ${told.join(', ')}.`];
}

/** What was not measured, and why: each attention once, with how often. */
function unmeasuredSentences(measurements: readonly FlashMeasurement[]): string[] {
  // An attention that failed did so in all passes.
  const first = measurements[0]?.pass;
  const failed = measurements.flatMap(({ cell, record, timed, pass }) => {
    if (pass !== first) return [];
    if (timed === null) {
      const reason = record.error?.message ?? '';
      return [
        {
          what: `Cells without a result (${statusInWords(record.status)})`,
          reason,
          shape: describeShape(cell),
        },
      ];
    }
    const { outcome } = timed;
    if (outcome.status === 'ok') return [];
    return [
      {
        what: `${nameOf(timed)}, ${statusWords[outcome.status]}`,
        reason: outcome.reason,
        shape: describeShape(cell),
      },
    ];
  });
  return [...Map.groupBy(failed, ({ what }) => what)].map(([what, group]) => {
    const reason = group[0]!.reason.split('\n', 1)[0]!.trim();
    return `${what}: ${listSome(group.map(({ shape }) => shape))}${reason === '' ? '' : ` (${reason})`}.`;
  });
}

const words: Readonly<Record<Pass, string>> = {
  forward: 'forward',
  backward: 'backward',
  both: 'forward and backward',
};
const statusWords = {
  'not-available': 'not available',
  'out-of-memory': 'out of memory',
  failed: 'failed',
} as const;

function meanAndRange(ratios: readonly number[]): string {
  const mean = `**${formatRatio(logAverage([...ratios]))}**`;
  if (ratios.length === 1) return mean;
  return `${mean} (${formatRatio(Math.min(...ratios))} to ${formatRatio(Math.max(...ratios))})`;
}
