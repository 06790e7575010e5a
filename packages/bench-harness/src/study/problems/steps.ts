import { formatDuration, formatPercent, formatRatio } from '@roofline/reports';
import { capitalize } from '../../parameters/words.ts';
import { valuesInWords } from '../../report/values-in-words.ts';
import type { Problem } from '../problem.ts';
import { best, named, ratioWords, worst } from '../in-words.ts';

const sizes = 'small,medium,large,xl,2.7b';

function inBillions(count: number): string {
  return count < 1e9 ? `${(count / 1e6).toPrecision(3)} M` : `${(count / 1e9).toPrecision(3)} B`;
}

/** How long steps take, and what their first ones cost. */
export const benchmarkingScript: Problem = {
  id: 'benchmarking_script',
  title: 'Benchmarking script',
  question:
    'How long do the forward and the backward pass of each model take, how much do the times scatter, and what changes without steps of warm-up?',
  runs: [
    {
      name: 'benchmarking_script.steps',
      words: {
        full: `e2e --size ${sizes} --context 128,256,512,1024 --dtype float32 --warmup 5 --steps 10`,
        quick: 'e2e --size tiny --context 64,128 --warmup 3 --steps 10',
      },
      ...{ secondsPerCell: { full: 2.2, quick: 5 }, wanted: 1 },
      shows: ['step-times', 'phases', 'time-by-size', 'phases-of-a-train-step', 'share-of-the-roof'],
    },
    {
      name: 'benchmarking_script.2.35b',
      words: {
        full: 'e2e --size 2.35b --context 128,256,512 --dtype float32 --warmup 5 --steps 10',
        quick: null,
      },
      ...{ secondsPerCell: { full: 2, quick: 6 }, wanted: 2 },
      shows: ['step-times', 'phases'],
    },
    {
      name: 'benchmarking_script.warmup',
      words: {
        full: `e2e --size ${sizes} --context 256 --warmup 0,1,2,5 --mode forward,forward-backward --steps 10`,
        quick: 'e2e --size tiny --context 64 --warmup 0,1,2,5 --mode forward,forward-backward --steps 10',
      },
      ...{ secondsPerCell: { full: 1.6, quick: 4 }, wanted: 1 },
      shows: ['warm-up', 'step-times'],
    },
  ],
  answers: [
    {
      of: 'benchmarking_script.steps/step-times',
      numbers: ['medianMs', 'context'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => row.text('mode'))].map(([mode, of]) => {
          const [least, most] = [best(of, 'medianMs'), worst(of, 'medianMs')];
          const at = (row: typeof least) =>
            `${formatDuration(row.number('medianMs'))} for ${row.text('size')} at context ${row.number('context')}`;
          return `${mode} ${least === most ? at(least) : `from ${at(least)} to ${at(most)}`}`;
        });
        return `${capitalize(parts.join('; '))} (medians).`;
      },
    },
    {
      of: 'benchmarking_script.*/step-times',
      numbers: ['parameters'],
      say(rows) {
        const counts = new Map(rows.map((row) => [row.text('size'), row.number('parameters')]));
        const parts = [...counts].map(([size, count]) => `${size} ${inBillions(count)}`);
        const large = counts.get('2.7b');
        const named =
          large === undefined
            ? ''
            : ` What the handout of 2026 calls xl (d_model 2560) is 2.7b here, whose name is not its ${inBillions(large)} parameters; ` +
              'xl here is that of 2025 (d_model 1600).';
        return `Parameters: ${parts.join(', ')}.${named}`;
      },
    },
    {
      of: 'benchmarking_script.steps/phases',
      numbers: ['forwardMs', 'backwardMs'],
      say(rows) {
        const ratios = rows
          .filter((row) => row.text('mode') === 'forward-backward')
          .map((row) => row.number('backwardMs') / row.number('forwardMs'));
        if (ratios.length === 0) return null;
        return (
          `A backward pass takes ${ratioWords(ratios)} the time of the forward pass before it: for each product of the forward ` +
          'pass it has two, one for the gradient of each operand.'
        );
      },
    },
    {
      of: 'benchmarking_script.steps/step-times',
      numbers: ['meanMs', 'stdMs'],
      say(rows) {
        const spread = rows.map((row) => ({
          name: `${row.text('size')}, context ${row.text('context')}, ${row.text('mode')}`,
          value: row.number('stdMs') / row.number('meanMs'),
        }));
        const [widest] = spread.toSorted((a, b) => b.value - a.value);
        const within = spread.filter(({ value }) => value <= 0.05).length;
        return (
          `The standard deviation is at most 5 % of the mean in ${within} of ${spread.length} cells; the widest is ` +
          `${formatPercent(widest!.value)} (${widest!.name}).`
        );
      },
    },
    {
      of: 'benchmarking_script.warmup/warm-up',
      numbers: ['warmup', 'firstMs', 'medianMs', 'meanRatio'],
      say(rows) {
        const cold = rows.filter((row) => row.number('warmup') === 0);
        const first = rows.filter((row) => row.number('warmup') === 1);
        if (cold.length === 0) return null;
        const firsts = cold.map((row) => row.number('firstMs') / row.number('medianMs'));
        const after = first.map((row) => row.number('meanRatio'));
        return (
          `Without warm-up the mean step takes ${ratioWords(cold.map((row) => row.number('meanRatio')))} the time that it takes ` +
          `after the most warm-up steps, since the first step alone takes ${ratioWords(firsts)} the median: it compiles or loads ` +
          'kernels, asks the driver for memory, and finds caches empty and clocks low.' +
          (after.length > 0 ? ` After a single warm-up step the mean is at ${ratioWords(after)}.` : '')
        );
      },
    },
  ],
};

/** Which kernels the time goes to. */
export const nsysProfile: Problem = {
  id: 'nsys_profile',
  title: 'Profile of a step',
  question:
    'Does the profile agree with the clock? Which kernel takes most time in the forward pass, and in both passes, and how often does it run? What else takes time besides matrix products, and how does softmax compare with the products inside attention, in FLOPs and in time?',
  runs: [
    {
      name: 'nsys_profile.float32',
      words: {
        full: `profile --size ${sizes} --context 128,256,512 --dtype float32 --warmup 3 --steps 3`,
        quick: 'profile --size tiny --context 64,128 --warmup 1 --steps 3',
      },
      ...{ secondsPerCell: { full: 5, quick: 8 }, wanted: 1 },
      shows: [
        'steps',
        'top-of-phases',
        'matmul-share',
        'attention',
        'roofline-2.7b-c256',
        'kinds-',
        'timeline-2.7b-c256',
        'timeline-tiny-c64',
        'kernels-2.7b-c256',
        'kernels-tiny-c64',
      ],
    },
    {
      name: 'nsys_profile.bfloat16',
      words: {
        full: 'profile --size small,2.7b --context 256 --dtype bfloat16 --warmup 3 --steps 3',
        quick: null,
      },
      ...{ secondsPerCell: { full: 5, quick: 8 }, wanted: 2 },
      shows: [
        'steps',
        'top-of-phases',
        'matmul-share',
        'attention',
        'roofline-',
        'timeline-2.7b',
        'kernels-2.7b',
      ],
    },
  ],
  answers: [
    {
      of: 'nsys_profile.*/steps',
      numbers: ['deviceMs', 'plainMs'],
      say: (rows) =>
        `On the device a profiled step takes ${ratioWords(rows.map((row) => row.number('deviceMs') / row.number('plainMs')))} ` +
        'the time of a step that is not profiled.',
    },
    ...(['forward', 'forward and backward', 'whole step'] as const).map((phase) => ({
      of: 'nsys_profile.*/top-of-phases',
      numbers: ['share', 'instances'],
      say(rows: Parameters<Problem['answers'][number]['say']>[0]) {
        const of = rows.filter((row) => row.text('phase') === phase);
        if (of.length === 0) return null;
        const parts = [...Map.groupBy(of, (row) => row.text('kernel'))].map(([kernel, group]) => {
          const counts = group.map((row) => row.number('instances'));
          const [least, most] = [Math.min(...counts), Math.max(...counts)].map(Math.round);
          const times = least === most ? `${least} times` : `${least} to ${most} times`;
          const shares = valuesInWords(
            named(group, 'share', (row) => row.text('cell')),
            formatPercent,
          );
          return `\`${kernel}\` (${shares} of the kernel time; ${times} a step)`;
        });
        return `Most time of the ${phase === 'whole step' ? phase : `${phase} pass${phase === 'forward' ? '' : 'es'}`} goes to ${parts.join('; ')}.`;
      },
    })),
    {
      of: 'nsys_profile.*/matmul-share',
      numbers: ['matmulShare'],
      say(rows) {
        const [forward, all] = ['forward', 'all'].map((phase) =>
          rows.filter((row) => row.text('phase') === phase),
        );
        if (forward!.length === 0 || all!.length === 0) return null;
        const shareOf = (of: typeof rows) =>
          valuesInWords(
            named(of, 'matmulShare', (row) => row.text('cell')),
            formatPercent,
          );
        return (
          `Matrix products take ${shareOf(forward!)} of the kernel time of the forward pass, and ${shareOf(all!)} of that of the whole ` +
          'step, to which the optimizer adds element-wise work alone.'
        );
      },
    },
    {
      of: 'nsys_profile.*/attention',
      numbers: ['timeRatio', 'flopsRatio'],
      say(rows) {
        const forward = rows.filter((row) => row.text('phase') === 'forward');
        if (forward.length === 0) return null;
        const [time, flops] = (['timeRatio', 'flopsRatio'] as const).map((key) =>
          forward.map((row) => row.number(key)),
        );
        const range = (values: readonly number[]) =>
          values.length === 1
            ? formatPercent(values[0]!)
            : `${formatPercent(Math.min(...values))} to ${formatPercent(Math.max(...values))}`;
        const factor = Math.max(...time!.map((each, index) => each / flops![index]!));
        return (
          `Inside attention softmax has ${range(flops!)} of the FLOPs of the two products and takes ${range(time!)} of their ` +
          `time, up to ${formatRatio(factor)} its share of the FLOPs: it moves memory, where products calculate.`
        );
      },
    },
  ],
};
