import { formatNumber, formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import type { Answer } from '../answer.ts';
import type { Problem } from '../problem.ts';
import { ratioWords, type AnsweringRow } from '../rows.ts';

const sizes = 'small,medium,large,xl,2.7b';

/** What running sums lose. */
export const mixedPrecisionAccumulation: Problem = {
  id: 'mixed_precision_accumulation',
  title: 'Accumulation in mixed precision',
  question: 'What becomes of 0.01 added a thousand times, in float32 and in float16, and why?',
  runs: [
    {
      name: 'mixed_precision_accumulation',
      words: { full: 'precision --study accumulation', quick: 'precision --study accumulation' },
      ...{ secondsPerCell: { full: 2, quick: 3 }, wanted: 1 },
      shows: ['accumulation'],
    },
  ],
  answers: [
    {
      of: 'mixed_precision_accumulation/accumulation',
      numbers: ['offBy'],
      say(rows) {
        const of = (experiment: string) => rows.where({ experiment }).first;
        const [high, low] = [of('float32 += float32'), of('float16 += float16')];
        const mixed = of('float32 += float16').text('sum');
        return (
          `A thousand times 0.01 is ${high.text('sum')} in float32 and ${low.text('sum')} in float16, off by ` +
          `${formatRatio(Math.abs(low.number('offBy') / high.number('offBy')))} as much: each float16 sum is rounded to ` +
          `a step that grows with it. Summed in float32 from float16 addends it is ${mixed}: the sum is kept, and ` +
          'what is left is the rounding of 0.01 itself.'
        );
      },
    },
  ],
};

/** What autocast and low precision round, and what they gain. */
export const benchmarkingMixedPrecision: Problem = {
  id: 'benchmarking_mixed_precision',
  title: 'Mixed precision',
  question:
    'Which dtypes does autocast give the parameters, the first layer, LayerNorm, logits, loss and gradients? Which parts of a norm suffer in low precision, and is it the same in bfloat16? How much time does mixed precision save, by size and pass?',
  runs: [
    {
      name: 'benchmarking_mixed_precision.dtypes',
      words: {
        full: 'precision --study dtypes --dtype float16,bfloat16',
        quick: 'precision --study dtypes --dtype float16,bfloat16',
      },
      ...{ secondsPerCell: { full: 2.2, quick: 4 }, wanted: 1 },
      shows: ['dtypes'],
    },
    {
      name: 'benchmarking_mixed_precision.norms',
      words: {
        full: 'precision --study norms --dtype float16,bfloat16',
        quick: 'precision --study norms --dtype float16,bfloat16',
      },
      ...{ secondsPerCell: { full: 2.2, quick: 3 }, wanted: 1 },
      shows: ['norms', 'norm-errors'],
    },
    {
      name: 'benchmarking_mixed_precision.times',
      words: {
        full: `precision --study speed --size ${sizes} --context 256 --dtype float32,bfloat16 --warmup 5 --steps 10`,
        quick: 'precision --study speed --size tiny --context 64 --dtype float32,bfloat16 --steps 5',
      },
      ...{ secondsPerCell: { full: 1.1, quick: 7 }, wanted: 1 },
      shows: ['speed', 'speed-ups'],
    },
    {
      name: 'benchmarking_mixed_precision.loss',
      words: {
        full: 'precision --study loss',
        quick: 'precision --study loss --loss-steps 50',
      },
      ...{ secondsPerCell: { full: 5, quick: 15 }, wanted: 3 },
      shows: ['loss-curves', 'losses'],
    },
  ],
  answers: [
    {
      of: 'benchmarking_mixed_precision.times/speed',
      numbers: ['speedUp'],
      say(rows) {
        const modes = rows.where({ dtype: 'bfloat16' }).by('mode', (of, mode) => {
          const at = (row: AnsweringRow) => `${formatRatio(row.number('speedUp'))} for ${row.text('size')}`;
          const ends = of.all.length === 1 ? '' : ` (${at(of.first)}, ${at(of.all.at(-1)!)})`;
          return `${mode} at **${formatRatio(logAverage(of.numbers('speedUp')))}**${ends}`;
        });
        return `Autocast to bfloat16 runs at these speeds of float32, in the geometric mean over the sizes: ${modes}.`;
      },
    },
    {
      of: 'benchmarking_mixed_precision.dtypes/dtypes',
      numbers: [],
      say(rows) {
        const parts = rows.all.flatMap((row) =>
          row.text('bfloat16') ? [`${row.text('tensor')} ${row.text('bfloat16')}`] : [],
        );
        return parts.length === 0 ? null : `Under autocast to bfloat16: ${parts.join(', ')}.`;
      },
    },
    ...(['float16', 'bfloat16'] as const).map((dtype): Answer => ({
      of: 'benchmarking_mixed_precision.norms/norms',
      numbers: ['magnitude', dtype],
      say(rows) {
        const output = rows.where({ part: 'output' });
        const good = rows.where({ part: 'output, statistics in float32' }).most(dtype);
        const bad = output.most(dtype);
        const inputs = (row: AnsweringRow) => `inputs of ${formatNumber(row.number('magnitude'), 1)}`;
        const lost = output.filter((row) => row.number(dtype) > 0.5);
        const why =
          lost.all.length === 0
            ? 'at no magnitude is it lost'
            : `from ${inputs(lost.least('magnitude'))} on it is lost, since squares beyond the range of the dtype spoil the statistics`;
        return (
          `Calculated in ${dtype} alone the output of norms is off by up to ${bad.percent(dtype)} ` +
          `(${bad.text('norm')}, ${inputs(bad)}); ${why}. With statistics in float32 it is off by ` +
          `at most ${good.percent(dtype)}, whatever the magnitude.`
        );
      },
    })),
    {
      of: 'benchmarking_mixed_precision.times/speed',
      numbers: ['peakBytes'],
      say(rows) {
        const pairs = rows
          .filter((row) => row.text('mode') !== 'forward')
          .pairs(['size', 'context', 'mode'], 'dtype', ['bfloat16', 'float32']);
        const ratios = ratioWords(pairs.overBeside('peakBytes'));
        const low = pairs.all.at(-1)!;
        return (
          `With a backward pass its peak memory is ${ratios} of float32's (${low.text('size')}, ` +
          `${low.text('mode')}: ${low.bytes('peakBytes')} and ${low.beside!.bytes('peakBytes')}): ` +
          'activations are halved, and parameters, gradients and moments stay float32, with low copies of the weights beside them.'
        );
      },
    },
  ],
};
