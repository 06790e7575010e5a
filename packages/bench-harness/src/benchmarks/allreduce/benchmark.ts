import { defineBenchmark } from '../define-benchmark.ts';
import { factsOf } from './operations.ts';
import {
  type CollectiveCell,
  type CollectiveParameters,
  type CollectiveSettings,
  collectiveCell,
  collectiveParameters,
  collectiveSettings,
  expandCollectiveCells,
} from './parameters.ts';
import { interpretCollectives } from './report/interpret.ts';
import { collectiveReport } from './report/report.ts';
import { collectiveTable } from './report/tables.ts';
import { describeCollective } from './report/words.ts';
import { type CollectiveResult, collectiveResult } from './result.ts';

/** All-reduce and the other collectives, between processes of one machine. */
export const allreduceBenchmark = defineBenchmark({
  name: 'allreduce',
  title: 'Collectives',
  parameters: collectiveParameters,
  cell: collectiveCell,
  result: collectiveResult,
  // It keeps what settings have, and leaves out what is swept.
  settings: (parameters: CollectiveParameters): CollectiveSettings => collectiveSettings.parse(parameters),
  expand: expandCollectiveCells,
  describe: describeCollective,
  async measure(cell: CollectiveCell, context): Promise<CollectiveResult> {
    const { measureCollective } = await import('./measure.ts');
    return await measureCollective(cell, context);
  },
  samplesMs: ({ ours }, { op }) => ours[factsOf[op].compared]?.maxMs ?? [],
  toTable: (records) => collectiveTable(interpretCollectives(records)),
  toReport: collectiveReport,
});
