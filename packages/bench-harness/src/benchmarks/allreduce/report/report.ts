import { formatNumber, formatPercent, formatRatio, type Report } from '@roofline/reports';
import type { CellRecord } from '../../../records/record.ts';
import { reportHead } from '../../../report/report-head.ts';
import { listSome, statusInWords } from '../../../report/values-in-words.ts';
import { type CollectiveMeasurement, interpretCollectives } from './interpret.ts';
import { rankPlots, sizePlots } from './plots.ts';
import { collectiveTable, fitTable, ncclTestsTable } from './tables.ts';
import { describeCollective } from './words.ts';

const method =
  'Ranks are processes of one machine. Sides and placements take turns; in a turn all ranks meet, warm up and then call ' +
  'again and again, each call timed on its own on the CPU, all of a turn between two events on a GPU. A time is that of ' +
  'the slowest rank. Bandwidths are those of nccl-tests: algbw is the size over the time, busbw what each link carries.';

/** The report of records of one device and one set of settings. */
export function collectiveReport(records: readonly CellRecord[]): Report {
  const measurements = interpretCollectives(records);
  const series = Map.groupBy(
    measurements,
    ({ cell: { op, backend, ranks, dtype }, side }) => `${op} ${backend} ${ranks} ${dtype} ${side}`,
  );
  const fit = fitTable([...series.values()]);
  return {
    ...reportHead('Collectives', records),
    summary: summaryOf(measurements),
    sections: [
      {
        id: 'bandwidths',
        title: 'Times and bandwidths',
        text: [method],
        blocks: [collectiveTable(measurements), ...sizePlots(measurements), ...rankPlots(measurements)],
      },
      ...(fit ? [{ id: 'latency', title: 'Latency and bandwidth', blocks: [fit] }] : []),
      { id: 'nccl-tests-columns', title: "In nccl-tests' columns", blocks: [ncclTestsTable(measurements)] },
    ],
  };
}

/** The findings, one sentence each. */
function summaryOf(measurements: readonly CollectiveMeasurement[]): string[] {
  const ours = measurements.filter(({ side }) => side === 'ours');
  const measured = ours.filter(({ main }) => main !== null);
  return [
    ...bestSentence(measured),
    ...peerSentence(measured),
    ...wrongSentence(measured),
    ...unmeasuredSentence(ours.filter(({ main }) => main === null)),
    `${measured.length} of ${ours.length} ${ours.length === 1 ? 'cell' : 'cells'} measured.`,
  ];
}

function bestSentence(measured: readonly CollectiveMeasurement[]): string[] {
  const [best] = measured.toSorted((a, b) => b.main!.busBandwidth - a.main!.busBandwidth);
  if (!best) return [];
  const { roofBytesPerSecond, main, cell } = best;
  const share = roofBytesPerSecond
    ? `, ${formatPercent(main!.busBandwidth / roofBytesPerSecond)} of the roof`
    : '';
  return [
    `The bus carries at most **${formatNumber(main!.busBandwidth / 1e9, 3)} GB/s**${share} (${describeCollective(cell)}).`,
  ];
}

function peerSentence(measured: readonly CollectiveMeasurement[]): string[] {
  const ratios = measured.flatMap(({ overPeer }) => (overPeer ? [overPeer.ratio] : []));
  if (ratios.length === 0) return [];
  const range = `**${formatRatio(Math.min(...ratios))}** to **${formatRatio(Math.max(...ratios))}**`;
  return [`Bus bandwidth over that of torch.distributed, in turn: ${range}.`];
}

function wrongSentence(measured: readonly CollectiveMeasurement[]): string[] {
  if (measured.length === 0) return [];
  const wrong = measured.filter((each) =>
    Object.values(each.measured).some((timing) => (timing.wrong ?? 0) > 0),
  );
  if (wrong.length === 0) return ['No element was wrong.'];
  return [`**Wrong elements**: ${listSome(wrong.map(({ cell }) => describeCollective(cell)))}.`];
}

function unmeasuredSentence(unmeasured: readonly CollectiveMeasurement[]): string[] {
  if (unmeasured.length === 0) return [];
  const told = unmeasured.map(
    ({ cell, record }) => `${describeCollective(cell)} (${statusInWords(record.status)})`,
  );
  return [`Without a result: ${listSome(told)}.`];
}
