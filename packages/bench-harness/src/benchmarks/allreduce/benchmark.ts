import { sweepOf } from '../../parameters/sweep.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { factsOf } from './operations.ts';
import { collectiveParameters, collectiveSettingParameters } from './parameters.ts';
import { bestFinding, peerFinding, wrongFinding } from './report/findings.ts';
import { lead } from './report/lead.ts';
import { sidesOf } from './report/measured.ts';
import { rankPlots, sizePlots } from './report/plots.ts';
import { collectiveTable, fitTable, ncclTestsTable } from './report/tables.ts';
import { collectiveResult } from './result.ts';

/** All-reduce and the other collectives, between processes of one machine. */
export const allreduceBenchmark = defineBenchmark({
  name: 'allreduce',
  title: 'Collectives',
  ...sweepOf({
    cell: collectiveParameters,
    settings: collectiveSettingParameters,
    nested: ['op', 'dtype', 'ranks', 'bytes', 'backend'],
  }),
  result: collectiveResult,
  samplesMs: ({ ours }, { op }) => ours[factsOf[op].compared]?.maxMs ?? [],
  table: (cells) => collectiveTable(sidesOf(cells)),
  lead: (cells) => lead(sidesOf(cells)),
  findings: [
    (cells) => {
      const sides = sidesOf(cells);
      return [...peerFinding(sides), ...bestFinding(sides), ...wrongFinding(sides)];
    },
  ],
  sections: [
    {
      id: 'bandwidths',
      title: 'Times and bandwidths',
      text: [
        'Ranks are processes of one machine. Sides and placements take turns; in a turn all ranks meet, warm up and then ' +
          'call again and again, each call timed on its own on the CPU, all of a turn between two events on a GPU. A time ' +
          'is that of the slowest rank. Bandwidths are those of nccl-tests: algbw is the size over the time, busbw what ' +
          'each link carries.',
      ],
      blocks: [
        (cells) => {
          const sides = sidesOf(cells);
          return [collectiveTable(sides), ...sizePlots(sides), ...rankPlots(sides)];
        },
      ],
    },
    {
      id: 'latency',
      title: 'Latency and bandwidth',
      blocks: [(cells) => fitTable(sidesOf(cells))],
    },
    {
      id: 'nccl-tests-columns',
      title: "In nccl-tests' columns",
      blocks: [(cells) => [ncclTestsTable(sidesOf(cells))]],
    },
  ],
});
