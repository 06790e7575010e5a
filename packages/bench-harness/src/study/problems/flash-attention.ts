import { meanAndRange } from '../../report/values-in-words.ts';
import type { Answer } from '../answer.ts';
import type { Problem } from '../problem.ts';
import type { AnsweringRow } from '../rows.ts';

/** FlashAttention next to plain attention, and its tiles. */
export const flashBenchmarking: Problem = {
  id: 'flash_benchmarking',
  title: 'FlashAttention',
  question:
    'How do the passes of FlashAttention compare with plain attention, by sequence, head dimension and dtype? Which tile sizes are fast, and which do not fit?',
  runs: [
    {
      name: 'flash_benchmarking.sweep',
      words: {
        full: 'flash --attention plain,flash --warmup-ms 10 --rounds 2',
        quick: 'flash --sequence 128,256 --head-dim 16,64 --dtype float32 --repeat-ms 30 --warmup-ms 5',
      },
      ...{ secondsPerCell: { full: 1.6, quick: 6 }, wanted: 2 },
      shows: [
        'forward-times',
        'backward-times',
        'both-times',
        'forward-throughput',
        'both-time',
        'roofline-',
        'peak-memory',
      ],
    },
    {
      name: 'flash_benchmarking.tiles',
      words: {
        full: 'flash --tile 16,32,64,128,256 --heads 16 --head-dim 64 --sequence 16384 --dtype bfloat16',
        quick: 'flash --tile 16,64,256 --sequence 256 --dtype float32 --repeat-ms 30 --warmup-ms 5',
      },
      ...{ secondsPerCell: { full: 2, quick: 2 }, wanted: 3 },
      shows: ['tiles'],
    },
    {
      name: 'flash_benchmarking.leaderboard',
      words: { full: 'flash --leaderboard --attention flash', quick: null },
      ...{ secondsPerCell: { full: 1.5, quick: 8 }, wanted: 1 },
      shows: ['both-times'],
    },
  ],
  answers: [
    ...Object.entries({
      forward: 'forward',
      backward: 'backward',
      both: 'forward and backward together',
    }).map(([pass, title]): Answer => ({
      of: `flash_benchmarking.sweep/${pass}-times`,
      numbers: ['medianMs', 'sequence'],
      say(rows) {
        const dtypes = rows
          .pairs(['headDimension', 'sequence', 'batch', 'heads', 'mask', 'dtype'], 'implementation', [
            'plain',
            'flash',
          ])
          .by('dtype', (of, dtype) => {
            const plain = of.most('sequence');
            const flash = plain.beside!;
            return (
              `${dtype} ${meanAndRange(of.overBeside('medianMs'))}; at sequence ${flash.text('sequence')}, d ` +
              `${flash.text('headDimension')}: ${flash.duration('medianMs')} against ${plain.duration('medianMs')}`
            );
          });
        return `Speed of FlashAttention over that of plain attention, ${title}, in the geometric mean: ${dtypes}.`;
      },
    })),
    {
      of: 'flash_benchmarking.tiles/tiles',
      numbers: ['medianMs', 'tileQueries', 'tileKeys'],
      say(rows) {
        const said = (row: AnsweringRow) =>
          `${row.text('tileQueries')} × ${row.text('tileKeys')} (${row.duration('medianMs')})`;
        const shapes = rows.by(
          'headDimension',
          (of, headDimension) =>
            `at d ${headDimension} ${said(of.least('medianMs'))} and ${said(of.most('medianMs'))}`,
        );
        return `The fastest and the slowest tile of queries × keys that fit, forward: ${shapes}.`;
      },
    },
    {
      of: 'flash_benchmarking.tiles/tiles',
      numbers: ['sharedBytes', 'registersPerThread', 'localBytesPerThread'],
      say(rows) {
        const [shared, registers, local] = [
          'sharedBytes',
          'registersPerThread',
          'localBytesPerThread',
        ] as const;
        const spilled = rows.filter((row) => row.number(local) > 0).all.length;
        return (
          `Tiles take ${rows.least(shared).bytes(shared)} to ${rows.most(shared).bytes(shared)} of shared memory and ` +
          `${rows.least(registers).text(registers)} to ${rows.most(registers).text(registers)} registers a thread; ` +
          `${spilled} of ${rows.all.length} spill, at most ${rows.most(local).bytes(local)} a thread.`
        );
      },
    },
    {
      of: 'flash_benchmarking.leaderboard/both-times',
      numbers: ['medianMs', 'teraflopsPerSecond'],
      say(rows) {
        const row = rows.least('medianMs');
        return (
          `The case of the public leaderboard (batch 1, 16 heads, d 64, sequence 16384, causal, bfloat16, both passes) takes ` +
          `**${row.duration('medianMs')}**, ${row.number('teraflopsPerSecond').toFixed(0)} TFLOP/s.`
        );
      },
    },
  ],
};
