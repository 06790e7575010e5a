import { formatDuration, formatNumber, formatPercent } from '@roofline/reports';
import { describeShape } from '../../../attention/shape.ts';
import type { Pass } from '../../../attention/work.ts';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import { firstLine, listSome, meanAndRange, statusInWords } from '../../../report/values-in-words.ts';
import {
  measuredPasses,
  nameOf,
  overFlash,
  overPlain,
  passesOf,
  timeOf,
  type MeasuredPass,
  type TimedPass,
} from './measured.ts';

const words: Readonly<Record<Pass, string>> = {
  forward: 'forward',
  backward: 'backward',
  both: 'forward and backward',
};

/** The findings, one sentence each, computed from the records. */
export function flashFindings(all: readonly TimedPass[]): string[] {
  const measured = measuredPasses(all);
  const of = (pass: Pass) => measured.filter((each) => each.pass === pass);
  const passes = passesOf(all);
  return [
    ...beatenRoofSentence(
      measured.map((each) => ({
        ...{ name: `${nameOf(each)}, ${words[each.pass]} (${each.name})`, dtype: each.cell.dtype },
        ...{ flopsPerSecond: timeOf(each)!.flopsPerSecond, record: each.record },
      })),
    ),
    ...passes.toReversed().flatMap((pass) => peerFinding(of(pass), pass)),
    ...passes.flatMap((pass) => fastestFinding(of(pass), pass)),
    ...passes.flatMap((pass) => plainFinding(of(pass), pass)),
    ...unmeasuredFindings(all),
  ];
}

function isOurFlash({ timed }: MeasuredPass): boolean {
  return timed.side === 'ours' && timed.attention === 'flash';
}

/** Where our flash attention comes closest to the roof. */
function fastestFinding(measured: readonly MeasuredPass[], pass: Pass): string[] {
  const [best] = measured
    .filter(isOurFlash)
    .toSorted((a, b) => timeOf(b)!.flopsPerSecond - timeOf(a)!.flopsPerSecond);
  if (!best) return [];
  const { flopsPerSecond, roofShare, time } = timeOf(best)!;
  const share = roofShare === null ? '' : `, ${formatPercent(roofShare)} of the roof`;
  return [
    `Flash attention, ${words[pass]}, reaches at most **${formatNumber(flopsPerSecond / 1e12, 3)} TFLOP/s**${share}: ` +
      `**${formatDuration(time.median)}** (${best.name}).`,
  ];
}

function plainFinding(measured: readonly MeasuredPass[], pass: Pass): string[] {
  const gains = measured.filter(isOurFlash).flatMap((each) => overPlain(each) ?? []);
  if (gains.length === 0) return [];
  return [`Flash over plain attention, ${words[pass]}: ${meanAndRange(gains)} as fast.`];
}

/** Our flash attention's time over that of each of PyTorch's, named. */
function peerFinding(measured: readonly MeasuredPass[], pass: Pass): string[] {
  const groups = Map.groupBy(
    measured.filter((each) => overFlash(each) !== null),
    nameOf,
  );
  if (groups.size === 0) return [];
  const phrases = [...groups].map(
    ([name, group]) => `${meanAndRange(group.map((each) => overFlash(each)!.ratio))} the time of ${name}`,
  );
  return [`Flash attention, ${words[pass]}, takes ${phrases.join(', ')}.`];
}

/** Attentions that were not measured in cells that were, and why: each once, with how often. */
function unmeasuredFindings(all: readonly TimedPass[]): string[] {
  const failed = all.flatMap((each) => {
    const { timed, pass, outcome, cell } = each;
    // An attention that failed did so in all passes.
    if (timed === null || outcome.status === 'ok' || pass !== all[0]!.pass) return [];
    const what = `${nameOf({ ...each, timed })}, ${statusInWords(outcome.status!)}`;
    return [{ what, reason: firstLine(outcome.error ?? ''), shape: describeShape(cell) }];
  });
  return [...Map.groupBy(failed, ({ what }) => what)].map(([what, group]) => {
    const { reason } = group[0]!;
    return `${what}: ${listSome(group.map(({ shape }) => shape))}${reason === '' ? '' : ` (${reason})`}.`;
  });
}
