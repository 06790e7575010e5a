import { formatPercent, type RatioPlot } from '@roofline/reports';
import { ratioOfMedians } from '../../../measuring/statistics.ts';
import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import { ratioCharts, type ComparedCell, type Comparison } from '../../../report/ratio-chart.ts';
import { rangeInWords, statusInWords } from '../../../report/values-in-words.ts';
import { e2eDtypes, modes, stepNames, stepParameters, type E2eCell, type Mode } from '../parameters.ts';
import { peerOfExecution, peerTitles } from '../../../peer/kinds.ts';
import { peerOf, type MeasuredStep, type StepMeasurement } from './measured.ts';
import { besidePeer, titlesOf } from './peers.ts';
import { roofPlot } from './plots.ts';

type Steps = readonly StepMeasurement[];

/** What a step of a mode is, in a sentence and at its beginning. */
export const modeNames: Readonly<Record<Mode, { readonly a: string; readonly title: string }>> = {
  forward: { a: 'forward pass', title: 'Forward passes' },
  'forward-backward': { a: 'forward and backward pass', title: 'Forward and backward passes' },
  'train-step': { a: 'training step', title: 'Whole steps' },
};

/** What sets steps apart that are compared, the most telling first. */
const named: readonly (keyof E2eCell & string)[] = [
  ...(['size', 'context', 'batch', 'mode', 'dtype', 'attention', 'execution'] as const),
  'peerExecution',
];

/** From the worst way to the best: a page leads with the best of ours. */
const byWorth = {
  execution: ['eager', 'compiled', 'autotuned'],
  attention: ['plain', 'flash'],
  dtype: ['float32', 'float16', 'bfloat16'],
} as const;

/** Steps that differ in nothing but the model and its tokens: of the fullest mode, and of the best way that is there. */
export function leadSteps<Step extends { readonly cell: E2eCell }>(steps: readonly Step[]): readonly Step[] {
  const ways = Object.entries({ mode: modes, ...byWorth }) as [keyof E2eCell, readonly string[]][];
  const lead = ways.reduce((chosen, [key, values]) => {
    const best = values.findLast((value) => chosen.some(({ cell }) => cell[key] === value));
    return chosen.filter(({ cell }) => cell[key] === best);
  }, steps);
  return lead.length > 1 ? lead : steps;
}

function comparedWithPeer(step: StepMeasurement): ComparedCell {
  const { cell, result, time } = step;
  const side = result === null ? null : peerOf(step as MeasuredStep);
  const peer = result?.peer;
  return {
    ...{ cell, ours: time?.median ?? null, theirs: side?.time.median ?? null },
    ...(side && { ratio: side.ratio }),
    ...(peer &&
      peer.status !== 'ok' && {
        note: `${peerTitles[peerOfExecution(cell.peerExecution)]}: ${statusInWords(peer.status)}`,
      }),
  };
}

/** Ours over the strongest peer's of each mode and dtype, but for what the page leads with. */
export function peerCharts(steps: Steps): RatioPlot[] {
  const lead = new Set(leadSteps(besidePeer(steps)));
  return e2eDtypes.flatMap((dtype) =>
    modes.flatMap((mode) => {
      const those = besidePeer(steps).filter(({ cell }) => cell.dtype === dtype && cell.mode === mode);
      const title = `${modeNames[mode].title}, ${dtype}`;
      if (those.length === lead.size && those.every((step) => lead.has(step))) return [];
      const id = `ratio-to-pytorch-${mode}-${dtype}`;
      return ratioCharts({ ...besidePeers(title, those), id }, those.map(comparedWithPeer));
    }),
  );
}

function besidePeers(title: string, steps: Steps): Omit<Comparison, 'id'> {
  const titles = titlesOf(steps);
  const theirs = titles.length === 1 ? titles[0]! : 'Strongest peer';
  const ways = [...new Set(steps.map(({ cell }) => cell.peerExecution))].join(' and ');
  return {
    ...{ title, named, parameters: stepParameters, ours: 'Roofline', theirs },
    caption: `Median time of a step over that of ${titles.join(' or ')} (${ways}), steps of both in turn; a pale band is the 95 % interval.`,
  };
}

/** Compiled steps with an eager one next to them. */
function compiledSteps(steps: Steps) {
  return pairsBy(steps, 'execution', 'eager').map(({ cell: compiled, beside }) => {
    const eagerMs = compiled.result.eagerInTurn?.deviceMs ?? beside.result.deviceMs;
    return { ...compiled, overEager: ratioOfMedians(compiled.result.deviceMs, eagerMs) };
  });
}

function comparedWithEager({
  cell,
  time,
  overEager,
}: ReturnType<typeof compiledSteps>[number]): ComparedCell {
  const ours = time!.median;
  return { cell, ours, theirs: ours / overEager.ratio, ratio: overEager };
}

/** Ours against the strongest peer, else compiled against eager, else the share of the roof; null where nothing was measured. */
export function lead(steps: Steps): Lead | null {
  return strongestLead(leadSteps(besidePeer(steps))) ?? compiledLead(steps) ?? roofLead(steps);
}

function strongestLead(beside: Steps): Lead | null {
  return ratioLead(
    besidePeers(`${titleOf(beside)} vs ${titlesOf(beside).join(' and ')}`, beside),
    beside.map(comparedWithPeer),
    (range) => `${aStep(beside)} takes ${range} of the time of ${peerName(beside)}`,
  );
}

function compiledLead(steps: Steps): Lead | null {
  const compiled = leadSteps(compiledSteps(steps));
  return ratioLead(
    {
      ...{ title: `${titleOf(compiled)}, compiled vs eager`, named, parameters: stepParameters },
      ...{ ours: 'Compiled', theirs: 'Eager' },
      caption: 'Median time of a compiled step over that of an eager one; a pale band is the 95 % interval.',
    },
    compiled.map(comparedWithEager),
    (range) => `${aStep(compiled)} takes ${range} of an eager one's time`,
  );
}

function roofLead(steps: Steps): Lead | null {
  const measured = leadSteps(measuredOf(steps));
  const shares = measured.flatMap(({ roofShare }) => roofShare ?? []);
  if (shares.length === 0) return null;
  const claim = `${aStep(measured)} reaches ${rangeInWords(shares, formatPercent)} of the roof`;
  const drawn = leadSteps(steps);
  const names = stepNames(drawn);
  const [plot] = roofPlot(drawn, ({ cell }) => names.name(cell));
  return { claim, ...(plot && { chart: { ...plot, id: 'at-a-glance' } }) };
}

function titleOf(steps: Steps): string {
  const [first, ...others] = new Set(steps.map(({ cell }) => cell.mode));
  return first && others.length === 0 ? modeNames[first].title : 'Steps';
}

/** The question that the steps of one sweep answer. */
export function question(steps: Steps): string {
  const executions = new Set(steps.map(({ cell }) => cell.execution));
  const isCompiled = [...executions].some((execution) => execution !== 'eager');
  const peers = titlesOf(besidePeer(steps)).join(', ');
  if (peers !== '') return `${isCompiled ? 'Compiled' : 'Steps'} vs ${peers}`;
  return isCompiled && executions.has('eager') ? 'Compiled vs eager' : 'Steps';
}

/** How the peer ran: `torch.compile`, `eager PyTorch`, `JAX`; the peer's name where it ran in several ways. */
function peerName(steps: Steps): string {
  const ways = new Set(steps.map(({ cell }) => wayNames[cell.peerExecution]));
  const titles = titlesOf(steps);
  if (ways.size === 1) return [...ways][0]!;
  return titles.length === 1 ? titles[0]! : `the stronger of ${titles.join(' and ')}`;
}

const wayNames: Readonly<Record<E2eCell['peerExecution'], string>> = {
  eager: 'eager PyTorch',
  compile: 'torch.compile',
  'reduce-overhead': 'torch.compile',
  'max-autotune': 'torch.compile',
  'whole-graph': 'PyTorch in one CUDA graph',
  jit: 'JAX',
};

/** `A compiled bfloat16 training step`: what all have in common. */
export function aStep(steps: readonly { readonly cell: E2eCell }[]): string {
  const only = <K extends 'execution' | 'dtype' | 'mode'>(key: K) => {
    const values = new Set(steps.map(({ cell }) => cell[key]));
    return values.size === 1 ? steps[0]!.cell[key] : null;
  };
  const mode = only('mode');
  const execution = only('execution');
  const words = [execution === 'eager' ? null : execution, only('dtype'), mode ? modeNames[mode].a : 'step']
    .filter(Boolean)
    .join(' ');
  return `${/^[aeiou]/.test(words) ? 'An' : 'A'} ${words}`;
}
