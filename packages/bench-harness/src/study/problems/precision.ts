import { formatBytes, formatNumber, formatPercent, formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import type { Problem } from '../problem.ts';
import { best, pairsOf, ratioWords, worst } from '../in-words.ts';

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
      ...{ secondsPerCell: { full: 1.5, quick: 3 }, wanted: 1 },
      shows: ['accumulation'],
    },
  ],
  answers: [
    {
      of: 'mixed_precision_accumulation/accumulation',
      numbers: ['offBy'],
      say(rows) {
        const of = (experiment: string) => rows.find((row) => row.text('experiment') === experiment);
        const [high, low, mixed] = [
          of('float32 += float32'),
          of('float16 += float16'),
          of('float32 += float16'),
        ];
        if (!high || !low || !mixed) return null;
        return (
          `A thousand times 0.01 is ${high.text('sum')} in float32 and ${low.text('sum')} in float16, off by ` +
          `${formatRatio(Math.abs(low.number('offBy')) / Math.abs(high.number('offBy')))} as much: each float16 sum is rounded to ` +
          `a step that grows with it. Summed in float32 from float16 addends it is ${mixed.text('sum')}: the sum is kept, and ` +
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
      ...{ secondsPerCell: { full: 1.5, quick: 4 }, wanted: 1 },
      shows: ['dtypes'],
    },
    {
      name: 'benchmarking_mixed_precision.norms',
      words: {
        full: 'precision --study norms --dtype float16,bfloat16',
        quick: 'precision --study norms --dtype float16,bfloat16',
      },
      ...{ secondsPerCell: { full: 1.5, quick: 3 }, wanted: 1 },
      shows: ['norms', 'norm-errors'],
    },
    {
      name: 'benchmarking_mixed_precision.times',
      words: {
        full: `precision --study speed --size ${sizes} --context 256 --dtype float32,bfloat16 --warmup 5 --steps 10`,
        quick: 'precision --study speed --size tiny --context 64 --dtype float32,bfloat16 --steps 5',
      },
      ...{ secondsPerCell: { full: 1, quick: 7 }, wanted: 1 },
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
      of: 'benchmarking_mixed_precision.dtypes/dtypes',
      numbers: [],
      say(rows) {
        const of = (tensor: string) => rows.find((row) => row.text('tensor') === tensor)?.text('bfloat16');
        const names = ['parameters', 'first layer', 'layerNorm', 'logits', 'loss', 'gradients'];
        const parts = names.flatMap((name) => (of(name) ? [`${name} ${of(name)}`] : []));
        return parts.length === 0 ? null : `Under autocast to bfloat16: ${parts.join(', ')}.`;
      },
    },
    ...(['float16', 'bfloat16'] as const).map((dtype) => ({
      of: 'benchmarking_mixed_precision.norms/norms',
      numbers: ['magnitude', dtype],
      say(rows: Parameters<Problem['answers'][number]['say']>[0]) {
        const of = (part: string) => rows.filter((row) => row.text('part') === part);
        const [output, mended] = [of('output'), of('output, statistics in float32')];
        if (output.length === 0 || mended.length === 0) return null;
        const [good, bad] = [worst(mended, dtype), worst(output, dtype)];
        const lost = output.filter((row) => row.number(dtype) > 0.5);
        const firstLost = lost.length === 0 ? null : best(lost, 'magnitude');
        const why =
          firstLost === null
            ? 'at no magnitude is it lost'
            : `from inputs of ${formatNumber(firstLost.number('magnitude'), 1)} on it is lost, since squares beyond the range of the ` +
              'dtype spoil the statistics';
        return (
          `Calculated in ${dtype} alone the output of norms is off by up to ${formatPercent(bad.number(dtype))} ` +
          `(${bad.text('norm')}, inputs of ${formatNumber(bad.number('magnitude'), 1)}); ${why}. With statistics in float32 it is off by ` +
          `at most ${formatPercent(good.number(dtype))}, whatever the magnitude.`
        );
      },
    })),
    {
      of: 'benchmarking_mixed_precision.times/speed',
      numbers: ['speedUp'],
      say(rows) {
        const low = rows.filter((row) => row.text('dtype') === 'bfloat16');
        if (low.length === 0) return null;
        const parts = [...Map.groupBy(low, (row) => row.text('mode'))].map(([mode, of]) => {
          const ratios = of.map((row) => row.number('speedUp'));
          const [first, last] = [of[0]!, of.at(-1)!];
          const ends =
            of.length === 1
              ? ''
              : ` (${formatRatio(first.number('speedUp'))} for ${first.text('size')}, ` +
                `${formatRatio(last.number('speedUp'))} for ${last.text('size')})`;
          return `${mode} at **${formatRatio(logAverage(ratios))}**${ends}`;
        });
        return `Autocast to bfloat16 runs ${parts.join(', ')} the speed of float32, in the geometric mean over the sizes.`;
      },
    },
    {
      of: 'benchmarking_mixed_precision.times/speed',
      numbers: ['peakBytes'],
      say(rows) {
        const pairs = pairsOf(
          rows.filter((row) => row.text('mode') !== 'forward'),
          ['size', 'context', 'mode'],
          (row) => row.text('dtype') === 'bfloat16',
          (row) => row.text('dtype') === 'float32',
        );
        if (pairs.length === 0) return null;
        const ratios = pairs.map(([low, high]) => low.number('peakBytes') / high.number('peakBytes'));
        const [low, high] = pairs.at(-1)!;
        return (
          `With a backward pass its peak memory is ${ratioWords(ratios)} of float32's (${low.text('size')}, ` +
          `${low.text('mode')}: ${formatBytes(low.number('peakBytes'))} and ${formatBytes(high.number('peakBytes'))}): ` +
          'activations are halved, and parameters, gradients and moments stay float32, with low copies of the weights beside them.'
        );
      },
    },
  ],
};
