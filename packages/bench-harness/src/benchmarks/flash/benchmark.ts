import { describeShape } from '../../attention/shape.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import {
  expandFlashCells,
  flashCell,
  flashParameters,
  flashSettings,
  type FlashCell,
  type FlashParameters,
  type FlashSettings,
} from './parameters.ts';
import { interpretFlash } from './report/interpret.ts';
import { flashReport } from './report/report.ts';
import { flashTable } from './report/tables.ts';
import { flashResult, type FlashResult } from './result.ts';

/** The attention kernels compared with plain attention and with PyTorch's, a pass at a time. */
export const flashBenchmark = defineBenchmark({
  name: 'flash',
  title: 'FlashAttention',
  parameters: flashParameters,
  cell: flashCell,
  result: flashResult,
  // It keeps what settings have, and leaves out what is swept.
  settings: (parameters: FlashParameters): FlashSettings => flashSettings.parse(parameters),
  expand: expandFlashCells,
  describe: describeShape,
  flashAttention: (cell, { attentions }) => (attentions.includes('flash') ? cell : null),
  async measure(cell: FlashCell, context) {
    // Only the cell's own process opens a device.
    const { measureFlash } = await import('./measure.ts');
    return measureFlash(cell, context);
  },
  samplesMs: (result) => Object.values(firstMeasured(result)?.samplesMs ?? {}).at(-1) ?? [],
  peakBytes: (result) => firstMeasured(result)?.peakBytes ?? null,
  toTable: (records) => flashTable(interpretFlash(records)),
  toReport: flashReport,
});

/** What is compared between runs: our flash attention, or what was measured of ours in its place. */
function firstMeasured({ timed }: FlashResult) {
  const ours = timed.flatMap(({ side, attention, outcome }) =>
    side === 'ours' && outcome.status === 'ok' ? [{ attention, ...outcome }] : [],
  );
  return ours.find(({ attention }) => attention === 'flash') ?? ours[0];
}
