import { listSome } from '../../../report/values-in-words.ts';
import { canonicalJson } from '../../../records/json.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { peerNames, peerOfExecution, peerTitles } from '../../../peer/kinds.ts';
import { stepNames, type E2eCell } from '../parameters.ts';
import { peerOf, type MeasuredStep, type StepMeasurement } from './measured.ts';

/** What belongs to the peer of a cell, and not to our step. */
const ofPeer = ['peerAttention', 'peerExecution'] as const satisfies readonly (keyof E2eCell)[];

/** Measured steps that ran in turn with a peer. */
export function comparedSteps(steps: readonly StepMeasurement[]): MeasuredStep[] {
  return measuredOf(steps).filter((step) => peerOf(step) !== null);
}

/** `PyTorch`, or of several `PyTorch and JAX`. */
export function titleOfPeers(compared: readonly MeasuredStep[]): string {
  return titlesOf(compared).join(' and ');
}

/** The head of a column: `PyTorch`, or `peer` where rows have different ones. */
export function headOfPeers(compared: readonly StepMeasurement[]): string {
  const titles = titlesOf(compared);
  return titles.length === 1 ? titles[0]! : 'peer';
}

export function titlesOf(compared: readonly StepMeasurement[]): string[] {
  const names = new Set(compared.map(({ cell }) => peerOfExecution(cell.peerExecution)));
  return peerNames.filter((name) => names.has(name)).map((name) => peerTitles[name]);
}

/** `JAX 0.11.0`. */
export function peerVersion({ cell, result: { peer } }: MeasuredStep): string {
  const { torch, jax = torch } = peer?.status === 'ok' ? peer : {};
  return `${peerTitles[peerOfExecution(cell.peerExecution)]} ${jax}`;
}

/** `JAX 0.11.0 (jit)`. */
function peerWay(step: MeasuredStep): string {
  return `${peerVersion(step)} (${step.cell.peerExecution})`;
}

/** `PyTorch 2.11.0 (eager and compile)`, of each peer. */
export function peerWays(compared: readonly MeasuredStep[]): string {
  const executions = (group: readonly MeasuredStep[]) =>
    [...new Set(group.map(({ cell }) => cell.peerExecution))].join(' and ');
  return [...Map.groupBy(compared, peerVersion)]
    .map(([version, group]) => `${version} (${executions(group)})`)
    .join(' and ');
}

/** Whether a step of ours has several peers, one of which is the strongest. */
export function hasSeveralPeers(compared: readonly MeasuredStep[]): boolean {
  return [...groupsOf(compared).values()].some((group) => group.length > 1);
}

/** The steps that were to be compared with a peer: where there are several, with the strongest, or the first if all failed. */
export function besidePeer<Step extends StepMeasurement>(steps: readonly Step[]): Step[] {
  const groups = groupsOf(steps.filter(({ result }) => result?.peer));
  return [...groups.values()].map((group) => {
    const timeOf = (step: Step) =>
      (step.result === null ? null : peerOf(step as MeasuredStep))?.time.median ?? Infinity;
    return group.reduce((least, each) => (timeOf(each) < timeOf(least) ? each : least));
  });
}

function groupsOf<Step extends StepMeasurement>(compared: readonly Step[]): Map<string, Step[]> {
  return Map.groupBy(compared, ({ cell }) =>
    canonicalJson({ ...cell, ...Object.fromEntries(ofPeer.map((key) => [key, null])) }),
  );
}

/** Which peer is the strongest of several, and for which steps; nothing where each step has one. */
export function strongestFinding(steps: readonly StepMeasurement[]): string[] {
  const compared = comparedSteps(steps);
  if (!hasSeveralPeers(compared)) return [];
  const strongest = besidePeer(compared);
  const keys = Object.keys(strongest[0]!.cell).filter((key) => !ofPeer.some((other) => other === key));
  const names = stepNames(strongest, keys as (keyof E2eCell)[]);
  const ways = [...Map.groupBy(strongest, peerWay)];
  if (ways.length === 1) return [`The strongest peer is ${ways[0]![0]}, throughout.`];
  const phrases = ways.map(
    ([way, group]) => `${way} for ${listSome(group.map(({ cell }) => names.name(cell)))}`,
  );
  return [`The strongest peer is ${phrases.join('. It is ')}.`];
}
