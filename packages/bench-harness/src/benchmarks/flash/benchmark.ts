import { shapeParameters } from '../../attention/shape.ts';
import { sweepOf } from '../../parameters/sweep.ts';
import { defineBenchmark } from '../define-benchmark.ts';
import { flashSettingParameters } from './parameters.ts';
import { flashFindings } from './report/findings.ts';
import { besidePeer, lead } from './report/lead.ts';
import { passesOf, timedPasses } from './report/measured.ts';
import { memoryPlots, throughputPlots, timePlots } from './report/plots.ts';
import { attentionRooflines } from './report/roofline.ts';
import { flashTable, memoryTable, passTable, passTitles } from './report/tables.ts';
import { flashResult, type FlashResult } from './result.ts';

const method =
  'Times are those of calls in a queue, as triton.testing.do_bench takes them: between two events on the device, with ' +
  'the L2 cache of a GPU overwritten before each. All attentions of a shape take turns in one run.';
const formula =
  'FLOPs are 2 · batch · heads · sequence² · d forward (4 without a causal mask) and 2.5 times that backward, whatever ' +
  'an implementation calculates.';

/** The attention kernels compared with plain attention and with PyTorch's, a pass at a time. */
export const flashBenchmark = defineBenchmark({
  name: 'flash',
  title: 'FlashAttention',
  ...sweepOf({
    cell: shapeParameters,
    settings: flashSettingParameters,
    // Short sequences first.
    nested: ['dtype', 'mask', 'batch', 'heads', 'sequence', 'headDimension'],
  }),
  result: flashResult,
  flashAttention: (cell, { attentions }) => (attentions.includes('flash') ? cell : null),
  sharesProcess: (_, { peer }) => peer === null,
  samplesMs: (result) => Object.values(firstMeasured(result)?.samplesMs ?? {}).at(-1) ?? [],
  peakBytes: (result) => firstMeasured(result)?.peakBytes ?? null,
  table: (cells) => flashTable(timedPasses(cells)),
  question: () => 'Attention kernels',
  lead: (cells) => lead(timedPasses(cells)),
  findings: [(cells) => flashFindings(timedPasses(cells))],
  sections: [
    (cells) => {
      const timed = timedPasses(cells);
      return passesOf(timed).map((pass) => ({
        ...{ id: pass, title: passTitles[pass], text: [method, formula] },
        blocks: [
          ...besidePeer(timed, pass),
          passTable(timed, pass),
          ...timePlots(timed, pass),
          ...throughputPlots(timed, pass),
        ],
      }));
    },
    {
      id: 'roof',
      title: 'Under the roof',
      blocks: [(cells) => attentionRooflines(timedPasses(cells))],
    },
    {
      id: 'memory',
      title: 'Memory',
      blocks: [
        (cells) => {
          const timed = timedPasses(cells);
          return [memoryTable(timed), ...memoryPlots(timed, timed[0]!.pass)];
        },
      ],
    },
  ],
});

/** What is compared between runs: our flash attention, or what was measured of ours in its place. */
function firstMeasured({ timed }: FlashResult) {
  const ours = timed.flatMap(({ side, attention, outcome }) =>
    side === 'ours' && outcome.status === 'ok' ? [{ attention, ...outcome }] : [],
  );
  return ours.find(({ attention }) => attention === 'flash') ?? ours[0];
}
