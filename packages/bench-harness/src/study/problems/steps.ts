import { formatPercent, formatRatio } from '@roofline/reports';
import { capitalize } from '../../parameters/words.ts';
import { rangeInWords } from '../../report/values-in-words.ts';
import type { Answer } from '../answer.ts';
import type { Problem } from '../problem.ts';
import type { AnsweringRow, Rows } from '../rows.ts';

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
      ...{ secondsPerCell: { full: 2, quick: 5 }, wanted: 1 },
      shows: ['step-times', 'phases', 'time-by-size', 'phases-of-a-train-step', 'share-of-the-roof'],
    },
    {
      name: 'benchmarking_script.2.35b',
      words: {
        full: 'e2e --size 2.35b --context 128,256,512 --dtype float32 --warmup 5 --steps 10',
        quick: null,
      },
      ...{ secondsPerCell: { full: 1.7, quick: 6 }, wanted: 2 },
      shows: ['step-times', 'phases'],
    },
    {
      name: 'benchmarking_script.warmup',
      words: {
        full: `e2e --size ${sizes} --context 256 --warmup 0,1,2,5 --mode forward,forward-backward --steps 10`,
        quick: 'e2e --size tiny --context 64 --warmup 0,1,2,5 --mode forward,forward-backward --steps 10',
      },
      ...{ secondsPerCell: { full: 2.5, quick: 4 }, wanted: 1 },
      shows: ['warm-up', 'step-times'],
    },
  ],
  answers: [
    {
      of: 'benchmarking_script.steps/step-times',
      numbers: ['medianMs', 'context'],
      say(rows) {
        const at = (row: AnsweringRow) =>
          `${row.duration('medianMs')} for ${row.text('size')} at context ${row.text('context')}`;
        const modes = rows.by('mode', (of, mode) => {
          const [least, most] = [of.least('medianMs'), of.most('medianMs')];
          return `${mode} ${least === most ? at(least) : `from ${at(least)} to ${at(most)}`}`;
        });
        return `${capitalize(modes)} (medians).`;
      },
    },
    {
      of: 'benchmarking_script.*/step-times',
      numbers: ['parameters'],
      say(rows) {
        const count = (of: Rows) => inBillions(of.first.number('parameters'));
        const large = rows.where({ size: '2.7b' });
        const named =
          large.all.length === 0
            ? ''
            : ` What the handout of 2026 calls xl (d_model 2560) is 2.7b here, whose name is not its ${count(large)} parameters; ` +
              'xl here is that of 2025 (d_model 1600).';
        return `Parameters: ${rows.by('size', (of, size) => `${size} ${count(of)}`)}.${named}`;
      },
    },
    {
      of: 'benchmarking_script.steps/phases',
      numbers: ['forwardMs', 'backwardMs'],
      say: (rows) =>
        `A backward pass takes ${rows.where({ mode: 'forward-backward' }).ratios((row) => row.number('backwardMs') / row.number('forwardMs'))} ` +
        'the time of the forward pass before it: for each product of the forward pass it has two, one for the gradient of each operand.',
    },
    {
      of: 'benchmarking_script.steps/step-times',
      numbers: ['meanMs', 'stdMs'],
      say(rows) {
        const spread = (row: AnsweringRow) => row.number('stdMs') / row.number('meanMs');
        const [widest] = rows.all.toSorted((a, b) => spread(b) - spread(a));
        return (
          `The standard deviation is at most 5 % of the mean in ${rows.filter((row) => spread(row) <= 0.05).all.length} of ` +
          `${rows.all.length} cells; the widest is ${formatPercent(spread(widest!))} ` +
          `(${widest!.text('size')}, context ${widest!.text('context')}, ${widest!.text('mode')}).`
        );
      },
    },
    {
      of: 'benchmarking_script.warmup/warm-up',
      numbers: ['warmup', 'firstMs', 'medianMs', 'meanRatio'],
      say(rows) {
        const [cold, first] = [rows.where({ warmup: '0' }), rows.where({ warmup: '1' })];
        const firsts = cold.ratios((row) => row.number('firstMs') / row.number('medianMs'));
        return (
          `Without warm-up the mean step takes ${cold.ratios('meanRatio')} the time that it takes after the most warm-up steps, ` +
          `since the first step alone takes ${firsts} the median: it compiles or loads kernels, asks the driver for memory, and ` +
          'finds caches empty and clocks low.' +
          (first.all.length > 0
            ? ` After a single warm-up step the mean is at ${first.ratios('meanRatio')}.`
            : '')
        );
      },
    },
  ],
};

/** Each in a run of its own. */
const profiledDTypes = ['float32', 'bfloat16'] as const;

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
      ...{ secondsPerCell: { full: 4.4, quick: 8 }, wanted: 1 },
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
      ...{ secondsPerCell: { full: 3, quick: 8 }, wanted: 2 },
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
    ...profiledDTypes.map((dtype): Answer => ({
      of: `nsys_profile.${dtype}/matmul-share`,
      numbers: ['matmulShare'],
      say(rows) {
        const [forward, all] = [rows.where({ phase: 'forward' }), rows.where({ phase: 'all' })];
        return (
          `In ${dtype} matrix products take ${forward.shares('matmulShare', 'cell')} of the kernel time of the forward pass, and ` +
          `${all.shares('matmulShare', 'cell')} of that of the whole step, to which the optimizer adds element-wise work alone.`
        );
      },
    })),
    {
      of: 'nsys_profile.*/steps',
      numbers: ['deviceMs', 'plainMs'],
      say: (rows) =>
        `On the device a profiled step takes ${rows.ratios((row) => row.number('deviceMs') / row.number('plainMs'))} ` +
        'the time of a step that is not profiled.',
    },
    ...profiledDTypes.flatMap((dtype) =>
      Object.entries({
        forward: 'forward pass',
        'forward and backward': 'forward and backward passes',
        'whole step': 'whole step',
      }).map(([phase, title]): Answer => ({
        of: `nsys_profile.${dtype}/top-of-phases`,
        numbers: ['share', 'instances'],
        say(rows) {
          const kernels = rows.where({ phase }).by('kernel', (of, kernel) => {
            const times = rangeInWords(of.numbers('instances').map(Math.round), String);
            const only = of.all.length === 1 ? ` for ${of.first.text('cell')}` : '';
            return `\`${kernel}\` (${of.shares('share', 'cell')}${only} of the kernel time; ${times} times a step)`;
          });
          return `In ${dtype} most time of the ${title} goes to ${kernels}.`;
        },
      })),
    ),
    {
      of: 'nsys_profile.*/attention',
      numbers: ['timeRatio', 'flopsRatio'],
      say(rows) {
        const forward = rows.where({ phase: 'forward' });
        const range = (key: string) =>
          [...new Set([forward.least(key), forward.most(key)])].map((row) => row.percent(key)).join(' to ');
        const factor = Math.max(
          ...forward.numbers((row) => row.number('timeRatio') / row.number('flopsRatio')),
        );
        return (
          `Inside attention softmax has ${range('flopsRatio')} of the FLOPs of the two products and takes ${range('timeRatio')} of ` +
          `their time, up to ${formatRatio(factor)} its share of the FLOPs: it moves memory, where products calculate.`
        );
      },
    },
  ],
};
