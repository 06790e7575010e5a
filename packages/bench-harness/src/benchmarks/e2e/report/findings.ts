import { formatDuration, formatPercent, formatRatio, type Block } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import { replaysGraphs } from '../../../execution/kinds.ts';
import { peerOfExecution, peerTitles } from '../../../peer/kinds.ts';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import { peerFailures } from '../../../report/peer-failures.ts';
import { ratioRange } from '../../../report/ratio-chart.ts';
import { modeNames } from './lead.ts';
import { e2eDtypes, modes, stepNames, type E2eCell } from '../parameters.ts';
import { flopsPerSecond, peerOf, type MeasuredStep, type StepMeasurement } from './measured.ts';
import {
  besidePeer,
  comparedSteps,
  hasSeveralPeers,
  peerWays,
  strongestFinding,
  titleOfPeers,
} from './peers.ts';

type Steps = readonly StepMeasurement[];

/** Each dtype in one sentence: what each mode takes of a peer's time; and where ours is slower. */
export function ratioFinding(steps: Steps): string[] {
  const compared = comparedSteps(steps);
  if (compared.length === 0) return [];
  const strongest = besidePeer(compared);
  const phrases = e2eDtypes.flatMap((dtype) => {
    const clauses = modes.flatMap((mode) => {
      const ratios = strongest.flatMap((step) =>
        step.cell.dtype === dtype && step.cell.mode === mode ? [peerOf(step)!.ratio.ratio] : [],
      );
      return ratios.length === 0 ? [] : [`a ${modeNames[mode].a} **${ratioRange(ratios)}**`];
    });
    return clauses.length === 0 ? [] : [`in ${dtype} ${clauses.join(', ')}`];
  });
  const whose = hasSeveralPeers(compared) ? 'the strongest peer' : peerWays(strongest);
  return [
    `Of the time of ${whose}: ${phrases.join('; ')}.`,
    ...strongestFinding(steps),
    ...slowerFinding(steps, strongest),
  ];
}

function slowerFinding(steps: Steps, compared: readonly MeasuredStep[]): string[] {
  const slower = compared
    .map((step) => ({ step, ratio: peerOf(step)!.ratio.ratio }))
    .filter(({ ratio }) => ratio > 1);
  const [worst] = slower.toSorted((a, b) => b.ratio - a.ratio);
  if (!worst) return [];
  const most = `**${formatRatio(worst.ratio)}** for ${stepNames(steps).name(worst.step.cell)}`;
  return [`Slower than ${titleOfPeers(compared)}: ${slower.length} of ${compared.length}, at most ${most}.`];
}

export function roofFinding(steps: Steps): string[] {
  const known = measuredOf(steps)
    .filter(({ roofShare }) => roofShare !== null)
    .sort((a, b) => b.roofShare! - a.roofShare!);
  const names = stepNames(steps);
  const name = ({ cell }: MeasuredStep) => names.name(cell);
  const beaten = beatenRoofSentence(
    known.map((step) => ({
      ...{ name: name(step), dtype: step.cell.dtype, record: step.record },
      flopsPerSecond: flopsPerSecond(step),
    })),
  );
  const [best, worst] = [known[0], known.at(-1)];
  if (beaten.length > 0 || !best || !worst) return beaten;
  const share = ({ roofShare }: MeasuredStep) => `**${formatPercent(roofShare!)}**`;
  const floor = `${formatDuration(best.time!.median)} against a floor of ${formatDuration(best.floorMs!)}`;
  const first = `Closest to the roof: ${share(best)} (${name(best)}: ${floor}).`;
  return best === worst ? [first] : [first, `Farthest from it: ${share(worst)} (${name(worst)}).`];
}

export function memoryFinding(steps: Steps): string[] {
  const compared = comparedSteps(steps);
  const ratios = compared.flatMap((step) => peerOf(step)!.memoryRatio ?? []);
  if (ratios.length === 0) return [];
  const [low, high] = [formatRatio(Math.min(...ratios)), formatRatio(Math.max(...ratios))];
  const reserved = compared.some(({ cell }) => replaysGraphs(cell.peerExecution));
  const counted = reserved ? ', of reserved memory where that replays CUDA graphs' : '';
  return [
    `Peak memory is ${low === high ? low : `between ${low} and ${high}`} that of ${titleOfPeers(compared)}${counted}.`,
  ];
}

interface Gain {
  readonly cell: E2eCell;
  readonly speedUp: number;
}

/** One sentence a precision: for each mode the geometric mean over all models, and where it is least and most. */
export function precisionFindings(steps: Steps): string[] {
  const gains = pairsBy(steps, 'dtype', 'float32').map(({ cell: low, beside }): Gain => ({
    ...{ cell: low.cell, speedUp: beside.time!.median / low.time!.median },
  }));
  return [...Map.groupBy(gains, ({ cell }) => cell.dtype)].map(([dtype, group]) => {
    const ofModes = [...Map.groupBy(group, ({ cell }) => cell.mode)].map(([mode, speeds]) => {
      const mean = logAverage(speeds.map(({ speedUp }) => speedUp));
      return `\`${mode}\` at **${formatRatio(mean)}**${extremes(speeds)}`;
    });
    const average = group.length > ofModes.length ? ', in the geometric mean' : '';
    return `\`${dtype}\` runs ${ofModes.join(', ')} the speed of float32${average}.`;
  });
}

function extremes(gains: readonly Gain[]): string {
  if (gains.length === 1) return '';
  const names = stepNames(gains, ['size', 'context', 'batch', 'attention', 'execution']);
  const ordered = gains.toSorted((a, b) => a.speedUp - b.speedUp);
  const at = ({ speedUp, cell }: Gain) => `${formatRatio(speedUp)} for ${names.name(cell)}`;
  return ` (${at(ordered[0]!)}, ${at(ordered.at(-1)!)})`;
}

/** Why steps of a peer have no time to compare with ours. */
export function peerNotes(steps: Steps): Block[] {
  const peers = steps.map(({ name, cell, result }) => ({
    ...{ name, peer: result?.peer, title: peerTitles[peerOfExecution(cell.peerExecution)] },
  }));
  const failures = peerFailures(peers).map((text): Block => ({ kind: 'note', tone: 'warning', text }));
  const apart = steps.filter(({ result }) => result?.peerApart).map(({ name }) => name);
  if (apart.length === 0) return failures;
  const text = `Not in turn, because both at once do not fit on the GPU, but one after the other: ${apart.join('; ')}.`;
  return [...failures, { kind: 'note', tone: 'warning', text }];
}
