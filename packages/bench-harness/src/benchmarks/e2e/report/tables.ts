import type { Row, Table } from '@roofline/reports';
import { summarize } from '../../../measuring/statistics.ts';
import { besideEagerColumns, type TimedWay } from '../../../report/beside-eager.ts';
import { tableOf, tablesOf, type ColumnOf, type TableOf } from '../../../report/declared-table.ts';
import { measuredOf, pairsBy } from '../../../report/measurement.ts';
import {
  achievedColumns,
  column,
  peakColumn,
  roofColumns,
  ratioColumns,
  timeColumns,
} from '../../../report/standard-columns.ts';
import { capitalize } from '../../../parameters/words.ts';
import { stepParameters } from '../parameters.ts';
import {
  besidePeer,
  comparedSteps,
  hasSeveralPeers,
  headOfPeers,
  peerVersion,
  titleOfPeers,
} from './peers.ts';
import {
  flopsPerSecond,
  optimizerTraffic,
  peerOf,
  phasesMs,
  type MeasuredStep,
  type StepMeasurement,
} from './measured.ts';

const columns: readonly ColumnOf<MeasuredStep>[] = [
  ...timeColumns(
    'Device time',
    'Mean and standard deviation of the time between two events on the device around each step.',
  ),
  column.number('tokensPerSecond', 'Tokens/s', tokensPerSecond, { digits: 3 }),
  ...achievedColumns(flopsPerSecond, "The model's FLOPs over the median time."),
  ...roofColumns,
  peakColumn,
  column.ms('forwardMs', 'Forward', (step) => phasesMs(step).forward),
  column.ms('backwardMs', 'Backward', (step) => phasesMs(step).backward),
  column.ms('optimizerMs', 'Optimizer', (step) => phasesMs(step).optimizer),
  column.number('optimizerGigabytesPerSecond', 'Optimizer traffic', (step) => trafficOver(step, 1e9), {
    ...{ unit: 'GB/s', digits: 3, detail: true, shown: 'filled' },
    description: '28 bytes a parameter over the median of the optimizer phase.',
  }),
  column.percent('optimizerCopyShare', 'Optimizer bandwidth', copyShare, {
    ...{ detail: true, shown: 'filled' },
    description:
      'Train steps: 28 bytes a parameter (AdamW reads four float32 values and writes three) over the median of ' +
      'the optimizer phase, against the measured ceiling of copies.',
  }),
  column.ms('wallMedianMs', 'Wall clock', ({ result }) => summarize(result.wallMs).median, {
    description: "Median of a whole step by the host's clock.",
  }),
  column.text('peer', 'Compared with', (step) => peerOf(step) && peerVersion(step), { shown: differInPeer }),
  column.ms('peerMs', 'Peer', (step) => peerOf(step)?.time.median, {
    ...{
      shown: 'filled',
      description:
        'Median, measured in turn; of JAX back to back, each step begun before the last had ended.',
    },
  }),
  column.ms('peerStepMs', 'Step by step', (step) => peerStepMs(step), {
    ...{ shown: 'filled', description: "Median of JAX's steps one by one, by the host's clock." },
  }),
  ...ratioColumns<MeasuredStep>('ratio', 'Ours / peer', (step) => peerOf(step)?.ratio, {
    description: 'Ratio of the medians: below 1 is faster than the peer.',
    interval: 'Of the ratio, by bootstrap over the steps of both.',
  }),
  column.ratio('memoryRatio', 'Memory ratio', (step) => peerOf(step)?.memoryRatio, {
    shown: 'filled',
    description:
      "Our peak memory over the peer's; where PyTorch replays CUDA graphs (reduce-overhead, max-autotune, whole-graph), of " +
      'reserved memory, for it does not count what graphs work in as allocated.',
  }),
];

function tokensPerSecond({ cell, time }: MeasuredStep): number {
  return (cell.batch * cell.context * 1000) / time!.median;
}

function trafficOver(step: MeasuredStep, bytesPerSecond: number): number | undefined {
  const traffic = optimizerTraffic(step);
  return traffic === null ? undefined : traffic / bytesPerSecond;
}

function copyShare(step: MeasuredStep): number | null | undefined {
  const { ceilings } = step.record;
  return ceilings && trafficOver(step, ceilings.copyBytesPerSecond);
}

/** Of a peer whose time is that of steps back to back. */
function peerStepMs({ result: { peer } }: MeasuredStep): number | undefined {
  return peer?.status === 'ok' && peer.backToBackMs ? summarize(peer.wallMs).median : undefined;
}

function differInPeer(steps: readonly MeasuredStep[]): boolean {
  return new Set(steps.filter((step) => peerOf(step) !== null).map(peerVersion)).size > 1;
}

/** What programs that read rows find besides. */
function factsOf(step: MeasuredStep): Row {
  const { time, result } = step;
  const { peer } = result;
  const side = peerOf(step);
  return {
    ...{ minMs: time!.min, maxMs: time!.max, parameters: result.parameterCount, loss: result.loss },
    ...(side && { peerMinMs: side.time.min, peerPeakBytes: side.peakBytes }),
    ...(side && { ratioLow: side.ratio.low, ratioHigh: side.ratio.high }),
    ...(peer && peer.status !== 'ok' && { peerStatus: peer.status, peerError: peer.error.message }),
  };
}

const times = ['meanMs', 'medianMs', 'tokensPerSecond', 'teraflopsPerSecond', 'gigaflopsPerSecond'];
const roofAndMemory = ['floorMs', 'roofShare', 'peakBytes'];
/** The columns of the peers of these rows. */
function peerColumns(steps: readonly StepMeasurement[]): NonNullable<TableOf<MeasuredStep>['shows']> {
  const head = headOfPeers(comparedSteps(steps));
  return [
    ...['peer', { key: 'peerMs', label: capitalize(head) }, 'peerStepMs'],
    ...[{ key: 'ratio', label: `Ours / ${head}` }, 'ratioInterval', 'memoryRatio'],
  ];
}

const timeTable: TableOf<MeasuredStep> = {
  ...{ id: 'step-times', title: 'Time of one step', parameters: stepParameters, columns, facts: factsOf },
  shows: [...times, ...roofAndMemory],
};

/** One row a cell: its time, its distance from the roof, and the peer's next to it where one ran. */
export function stepTable(steps: readonly StepMeasurement[]): Table {
  const shows = [...timeTable.shows!, 'optimizerCopyShare', ...peerColumns(steps)];
  // Only rows with a result are asked for values.
  return tableOf({ ...timeTable, shows, caption: productsOfPeer }, steps as readonly MeasuredStep[]);
}

/** The part of it that a page has room for. */
export function stepTimes(steps: readonly StepMeasurement[]): Table[] {
  return [tableOf(timeTable, steps as readonly MeasuredStep[])];
}

/** Ours compared with peers, where one ran; where several did, with the strongest of each step first. */
export function peerTable(steps: readonly StepMeasurement[]): Table[] {
  const compared = comparedSteps(steps);
  const beside = (id: string, title: string, rows: readonly MeasuredStep[]) =>
    tablesOf(
      {
        ...{ ...timeTable, id, title },
        caption: (steps) =>
          ['Steps of both in turn, in one sitting.', productsOfPeer(steps)].filter(Boolean).join(' '),
        shows: [{ key: 'medianMs', label: 'Ours', description: 'Median.' }, ...peerColumns(rows)],
      },
      rows,
    );
  const strongest = hasSeveralPeers(compared) ? besidePeer(compared) : [];
  return [
    ...beside('beside-the-strongest', 'Compared with the strongest peer', strongest),
    ...beside('beside-pytorch', `Compared with ${titleOfPeers(compared)}`, compared),
  ];
}

/** Where the time of a step goes, unless only forward passes were measured. */
export function phaseTable(steps: readonly StepMeasurement[]): Table[] {
  const phased = measuredOf(steps).filter((step) => phasesMs(step).backward !== undefined);
  return tablesOf(
    {
      ...{ ...timeTable, id: 'phases', title: 'Phases of a step', caption: 'Medians of the device time.' },
      shows: [
        ...['forwardMs', 'backwardMs', 'optimizerMs'],
        ...['optimizerGigabytesPerSecond', 'optimizerCopyShare', 'wallMedianMs'],
      ],
    },
    phased,
  );
}

/** On the CPU, which library PyTorch's products came from: it decides most of its time. */
function productsOfPeer(steps: readonly StepMeasurement[]): string {
  const libraries = steps.flatMap(({ result }) =>
    result?.peer?.status === 'ok' ? (result.peer.blas ?? []) : [],
  );
  return libraries.length === 0 ? '' : `PyTorch's products: ${[...new Set(libraries)].join('; ')}.`;
}

/** Compiled steps compared with eager ones of the same cell, where a cell was measured both ways. */
export function compiledTable(steps: readonly StepMeasurement[]): Table[] {
  const pairs = pairsBy(steps, 'execution', 'eager').map(({ cell: compiled, beside: eager }) => ({
    ...{ record: compiled.record, cell: compiled.cell, compilation: compiled.result.compilation },
    ...{ compiled: wayOf(compiled), eager: { ...wayOf(eager), ...compiled.result.eagerInTurn } },
    isInTurn: compiled.result.eagerInTurn !== null,
  }));
  const caption = pairs.some(({ isInTurn }) => isInTurn) ? 'Steps of both in turn, of one model.' : '';
  return tablesOf(
    {
      ...{ id: 'compiled-beside-eager', title: 'Compiled vs eager', caption },
      ...{
        parameters: stepParameters,
        columns: besideEagerColumns as readonly ColumnOf<(typeof pairs)[number]>[],
      },
    },
    pairs,
  );
}

function wayOf({ result: { deviceMs, wallMs, memory } }: MeasuredStep): TimedWay {
  return { deviceMs, wallMs, peakBytes: memory.peakAllocatedBytes };
}
