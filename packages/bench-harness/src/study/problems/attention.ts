import { formatRatio } from '@roofline/reports';
import { canonicalJson } from '../../records/json.ts';
import { capitalize } from '../../parameters/words.ts';
import type { Problem } from '../problem.ts';
import { Rows, ratioWords, type AnsweringRow } from '../rows.ts';

/** The assignment's sizes of attention by itself, and those for two cores of a CPU. */
export const attentionSizes = {
  full: '--head-dim 16,32,64,128 --sequence 256,1024,4096,8192,16384',
  quick: '--head-dim 16,64 --sequence 64,128,256',
};
/** The cells beside PyTorch of some sequences, and how many passes of each are run and counted. */
const besidePytorch = (sequence: string, passes: string) =>
  `attention --attention plain --execution eager,compiled --batch 8 --head-dim 16,32,64,128 --sequence ${sequence} --dtype float32,bfloat16 --peer torch ${passes}`;

/**
 * Each way of ours next to the same of PyTorch and to the compiled one: those are what a user chooses from, whichever way ours
 * runs.
 */
function besideTorch(rows: Rows, pass: 'forward' | 'backward'): string | null {
  const parts = (['eager', 'compiled'] as const).flatMap((execution) =>
    (['PyTorch plain', 'PyTorch compiled'] as const).flatMap((peer) => {
      const [ours, theirs] = [rows.where({ execution }), rows.where({ peer })];
      const ratios = ours
        .beside(theirs, ['headDimension', 'sequence', 'batch', 'dtype'])
        .overBeside(`${pass}Ms`, `peer${capitalize(pass)}Ms`);
      if (ratios.length === 0) return [];
      const slower = ratios.filter((ratio) => ratio > 1).length;
      return [
        `${execution} ${ratioWords(ratios)} of ${peer}'s (slower in ${slower} of ${ratios.length} cells)`,
      ];
    }),
  );
  return parts.length === 0
    ? null
    : `The ${pass} pass of our plain attention takes these parts of the time: ${parts.join('; ')}.`;
}

/** Attention by itself, in separate ops. */
export const pytorchAttention: Problem = {
  id: 'pytorch_attention',
  title: 'Attention',
  question:
    'How long do the passes of attention take by head dimension and sequence? How much memory is held before the backward pass, at which size does memory run out, and what does its formula say?',
  runs: [
    {
      name: 'pytorch_attention',
      words: {
        full: `attention --attention plain,flash --batch 8 ${attentionSizes.full} --dtype float32,bfloat16 --steps 100`,
        quick: `attention --attention plain,flash ${attentionSizes.quick} --steps 5`,
      },
      ...{ secondsPerCell: { full: 0.9, quick: 4 }, wanted: 1 },
      shows: ['pass-times', 'memory-need', 'time-', 'memory-'],
    },
    {
      name: 'pytorch_attention.until_it_fails',
      words: {
        full: 'attention --attention plain --batch 8 --head-dim 16,128 --sequence 32768,65536 --dtype float32,bfloat16 --warmup 2 --steps 5',
        quick: null,
      },
      ...{ secondsPerCell: { full: 1.7, quick: 12 }, wanted: 2 },
      shows: ['pass-times', 'memory-need'],
    },
    {
      // Kernels so short end before cold host code has launched the next, and they are the first that a process runs: they get
      // more passes before those that count.
      name: 'pytorch_attention.beside_pytorch_short',
      words: { full: besidePytorch('1024', '--warmup 300 --steps 100'), quick: null },
      ...{ secondsPerCell: { full: 5, quick: 20 }, wanted: 2 },
      shows: ['beside-torch'],
    },
    {
      name: 'pytorch_attention.beside_pytorch',
      words: { full: besidePytorch('4096,8192,16384', '--steps 20'), quick: null },
      ...{ secondsPerCell: { full: 7, quick: 20 }, wanted: 2 },
      shows: ['beside-torch'],
    },
  ],
  answers: [
    {
      of: 'pytorch_attention*/pass-times',
      numbers: ['forwardMedianMs', 'backwardMedianMs', 'sequence'],
      say(rows) {
        const dtypes = rows.where({ attention: 'plain' }).by('dtype', (of, dtype) => {
          const most = of.most('sequence');
          return (
            `${most.duration('forwardMedianMs')} and ${most.duration('backwardMedianMs')} in ${dtype} ` +
            `(d ${most.text('headDimension')}, sequence ${most.text('sequence')})`
          );
        });
        return `At the longest sequence that could be measured, plain attention's forward and backward passes take ${dtypes}.`;
      },
    },
    ...(['forward', 'backward'] as const).map((pass) => ({
      of: 'pytorch_attention.beside_pytorch*/beside-torch',
      numbers: [`${pass}Ms`, `peer${capitalize(pass)}Ms`],
      say: (rows: Rows) => besideTorch(rows, pass),
    })),
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['neededBytes', 'neededPeakBytes', 'sequence'],
      say(rows) {
        const first = rows.where({ attention: 'plain', status: 'out-of-memory' }).least('sequence');
        return (
          `Plain attention first runs out of memory at sequence **${first.text('sequence')}** (d ${first.text('headDimension')}, ` +
          `batch ${first.text('batch')}, ${first.text('dtype')}), where the formula gives ` +
          `${first.bytes('neededBytes')} before the backward pass and ${first.bytes('neededPeakBytes')} at the peak.`
        );
      },
    },
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['beforeBackwardBytes', 'neededBytes'],
      say: (rows) =>
        'What is held before the backward pass is ' +
        `${rows.ratios((row) => row.number('beforeBackwardBytes') / row.number('neededBytes'))} of what the formula says.`,
    },
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['beforeBackwardBytes', 'sequence'],
      say(rows) {
        const growthOf = (first: AnsweringRow, last: AnsweringRow) => {
          const [bytes, times] = ['beforeBackwardBytes', 'sequence'].map((key) =>
            Math.log2(last.number(key) / first.number(key)),
          );
          return bytes! / times!;
        };
        const attentions = rows.by('attention', (of, attention) => {
          const shapes = Map.groupBy(of.all, (row) =>
            canonicalJson(['headDimension', 'dtype', 'batch'].map((key) => row.text(key))),
          );
          const growths = [...shapes.values()].flatMap((same) => {
            const [first, last] = [new Rows(same).least('sequence'), new Rows(same).most('sequence')];
            return first === last ? [] : [growthOf(first, last)];
          });
          return growths.length === 0
            ? null
            : `${attention} attention ${formatRatio(2 ** Math.max(...growths))}`;
        });
        return (
          `Each doubling of the sequence multiplies the saved memory, on average over the sweep, at most so: ${attentions}. Plain ` +
          'attention keeps its weights, sequence² of them; flash attention recomputes them instead.'
        );
      },
    },
  ],
};
