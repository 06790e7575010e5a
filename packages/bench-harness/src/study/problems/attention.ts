import { formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import { canonicalJson } from '../../records/json.ts';
import { capitalize } from '../../parameters/words.ts';
import { meanAndRange } from '../../report/values-in-words.ts';
import type { Answer } from '../answer.ts';
import type { Problem } from '../problem.ts';
import { Rows, ratioWords, type AnsweringRow } from '../rows.ts';

const lengths = '--head-dim 16,32,64,128 --sequence 256,1024,4096,8192,16384';
const quickLengths = '--head-dim 16,64 --sequence 64,128,256';
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
        full: `attention --attention plain,flash --batch 8 ${lengths} --dtype float32,bfloat16 --steps 100`,
        quick: `attention --attention plain,flash ${quickLengths} --steps 5`,
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

/** What compiling gains, of attention and of models. */
export const torchCompile: Problem = {
  id: 'torch_compile',
  title: 'Compiling',
  question:
    'What does compiling gain for attention alone, and for the passes and the whole step of the models?',
  runs: [
    {
      name: 'torch_compile.attention',
      words: {
        full: `attention --attention plain --execution eager,compiled --batch 8 ${lengths} --dtype float32,bfloat16 --steps 20`,
        quick: `attention --attention plain --execution eager,compiled ${quickLengths} --steps 5`,
      },
      ...{ secondsPerCell: { full: 0.4, quick: 4 }, wanted: 1 },
      shows: ['pass-times', 'compiled-beside-eager', 'time-'],
    },
    {
      name: 'torch_compile.models',
      words: {
        full: 'e2e --size small,medium,large,xl,2.7b --context 256 --execution eager,compiled --attention plain --dtype float32,bfloat16 --warmup 5 --steps 10',
        quick: 'e2e --size tiny --context 64 --execution eager,compiled --warmup 2 --steps 5',
      },
      ...{ secondsPerCell: { full: 1.5, quick: 9 }, wanted: 1 },
      shows: ['step-times', 'compiled-beside-eager', 'time-by-size'],
    },
    {
      name: 'torch_compile.flash_models',
      words: {
        full: 'e2e --size small,medium,large,xl,2.7b --context 256 --execution eager,compiled --attention flash --dtype bfloat16 --warmup 5 --steps 10',
        quick: null,
      },
      ...{ secondsPerCell: { full: 1.1, quick: 9 }, wanted: 2 },
      shows: ['step-times', 'compiled-beside-eager', 'time-by-size'],
    },
    {
      name: 'torch_compile.programs',
      words: {
        full: 'compile --size small,2.7b --mode forward,train-step --dtype bfloat16 --steps 5',
        quick: 'compile --size tiny --context 64 --mode forward,train-step --steps 3',
      },
      ...{ secondsPerCell: { full: 8, quick: 10 }, wanted: 3 },
      shows: ['programs', 'fused'],
    },
  ],
  answers: [
    {
      of: 'torch_compile.attention/compiled-beside-eager',
      numbers: ['eagerMs', 'compiledMs', 'sequence'],
      say(rows) {
        const ratio = (row: AnsweringRow) => row.number('compiledMs') / row.number('eagerMs');
        const at = (of: Rows, end: AnsweringRow) => of.where({ sequence: end.text('sequence') });
        const passes = rows.by('pass', (of, pass) => {
          const longest = of.most('sequence');
          return `${pass} ${of.ratios(ratio)}, at sequence ${longest.text('sequence')} ${at(of, longest).ratios(ratio)}`;
        });
        const [short, long] = [rows.least('sequence'), rows.most('sequence')].map((end) =>
          logAverage(at(rows, end).numbers(ratio)),
        );
        const why =
          short! < long!
            ? ' Less is gained the longer the sequence: programs save launches, and mask, scale and softmax are one kernel in ' +
              'eager attention already, so that they move no fewer bytes.'
            : '';
        return `Compiled, plain attention takes these parts of eager's time: ${passes}.${why}`;
      },
    },
    ...(['plain', 'flash'] as const).map((attention): Answer => ({
      of: `torch_compile.${attention === 'flash' ? 'flash_models' : 'models'}/compiled-beside-eager`,
      numbers: ['eagerMs', 'compiledMs'],
      say(rows) {
        const ratio = (row: AnsweringRow) => row.number('compiledMs') / row.number('eagerMs');
        const modes = rows.by('mode', (of, mode) => `${mode} ${meanAndRange(of.numbers(ratio))}`);
        return `With ${attention} attention a compiled model takes these parts of the eager one's time: ${modes}.`;
      },
    })),
    {
      of: 'torch_compile.programs/programs',
      numbers: ['compileMs'],
      say(rows) {
        const most = rows.most('compileMs');
        return `Compiling takes at most ${most.duration('compileMs')} (${most.text('size')}, ${most.text('mode')}).`;
      },
    },
  ],
};

const sweptFlash = {
  full: 'flash --attention plain,flash --warmup-ms 10 --rounds 2',
  quick: 'flash --sequence 128,256 --head-dim 16,64 --dtype float32 --repeat-ms 30 --warmup-ms 5',
};

/** FlashAttention beside plain attention. */
export const flashBenchmarking: Problem = {
  id: 'flash_benchmarking',
  title: 'FlashAttention',
  question:
    'How do the passes of FlashAttention compare with plain attention, by sequence, head dimension and dtype? Which tile sizes are fast, and which do not fit?',
  runs: [
    {
      name: 'flash_benchmarking.sweep',
      words: sweptFlash,
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
