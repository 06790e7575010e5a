import { formatBytes, formatDuration, formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import { canonicalJson } from '../../records/json.ts';
import type { AnsweringRow } from '../answer.ts';
import type { Problem } from '../problem.ts';
import { capitalize } from '../../parameters/words.ts';
import { best, pairsOf, ratioWords, worst } from '../in-words.ts';

const lengths = '--head-dim 16,32,64,128 --sequence 256,1024,4096,8192,16384';
const quickLengths = '--head-dim 16,64 --sequence 64,128,256';

/**
 * Each way of ours next to the same of PyTorch and to the compiled one: those are what a user chooses from, whichever way ours
 * runs.
 */
function besideTorch(rows: readonly AnsweringRow[], pass: 'forward' | 'backward'): string | null {
  const parts = (['eager', 'compiled'] as const).flatMap((execution) =>
    (['PyTorch plain', 'PyTorch compiled'] as const).flatMap((peer) => {
      const pairs = pairsOf(
        rows,
        ['headDimension', 'sequence', 'batch', 'dtype'],
        (row) => row.text('execution') === execution,
        (row) => row.text('peer') === peer,
      );
      if (pairs.length === 0) return [];
      const ratios = pairs.map(
        ([own, theirs]) => own.number(`${pass}Ms`) / theirs.number(`peer${capitalize(pass)}Ms`),
      );
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
      ...{ secondsPerCell: { full: 1.6, quick: 4 }, wanted: 1 },
      shows: ['pass-times', 'memory-need', 'time-', 'memory-'],
    },
    {
      name: 'pytorch_attention.until_it_fails',
      words: {
        full: 'attention --attention plain --batch 8 --head-dim 16,128 --sequence 32768,65536 --dtype float32,bfloat16 --warmup 2 --steps 5',
        quick: null,
      },
      ...{ secondsPerCell: { full: 2, quick: 12 }, wanted: 2 },
      shows: ['pass-times', 'memory-need'],
    },
    {
      name: 'pytorch_attention.beside_pytorch',
      words: {
        full: 'attention --attention plain --execution eager,compiled --batch 8 --head-dim 16,32,64,128 --sequence 1024,4096,8192,16384 --dtype float32,bfloat16 --peer torch --steps 20',
        quick: null,
      },
      ...{ secondsPerCell: { full: 2.5, quick: 20 }, wanted: 2 },
      shows: ['beside-torch'],
    },
  ],
  answers: [
    {
      of: 'pytorch_attention*/pass-times',
      numbers: ['forwardMedianMs', 'backwardMedianMs', 'sequence'],
      say(rows) {
        const plain = rows.filter((row) => row.text('attention') === 'plain');
        const parts = [...Map.groupBy(plain, (row) => row.text('dtype'))].map(([dtype, of]) => {
          const most = worst(of, 'sequence');
          return (
            `${formatDuration(most.number('forwardMedianMs'))} and ${formatDuration(most.number('backwardMedianMs'))} in ${dtype} ` +
            `(d ${most.text('headDimension')}, sequence ${most.text('sequence')})`
          );
        });
        return parts.length === 0
          ? null
          : `At the longest sequence that could be measured, plain attention's forward and backward passes take ${parts.join('; ')}.`;
      },
    },
    ...(['forward', 'backward'] as const).map((pass) => ({
      of: 'pytorch_attention.beside_pytorch/beside-torch',
      numbers: [`${pass}Ms`, `peer${capitalize(pass)}Ms`],
      say: (rows: readonly AnsweringRow[]) => besideTorch(rows, pass),
    })),
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['neededBytes', 'neededPeakBytes', 'sequence'],
      say(rows) {
        const failed = rows.filter(
          (row) => row.text('attention') === 'plain' && row.text('status') === 'out-of-memory',
        );
        if (failed.length === 0) return null;
        const first = best(failed, 'sequence');
        return (
          `Plain attention first runs out of memory at sequence **${first.text('sequence')}** (d ${first.text('headDimension')}, ` +
          `batch ${first.text('batch')}, ${first.text('dtype')}), where the formula gives ` +
          `${formatBytes(first.number('neededBytes'))} before the backward pass and ${formatBytes(first.number('neededPeakBytes'))} ` +
          'at the peak.'
        );
      },
    },
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['beforeBackwardBytes', 'neededBytes'],
      say(rows) {
        const ratios = rows.map((row) => row.number('beforeBackwardBytes') / row.number('neededBytes'));
        return `What is held before the backward pass is ${ratioWords(ratios)} of what the formula says.`;
      },
    },
    {
      of: 'pytorch_attention*/memory-need',
      numbers: ['beforeBackwardBytes', 'sequence'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => row.text('attention'))].flatMap(([attention, of]) => {
          const group = Map.groupBy(of, (row) =>
            canonicalJson(['headDimension', 'dtype', 'batch'].map((key) => row.text(key))),
          );
          const growths = [...group.values()].flatMap((same) => {
            const [first, last] = [best(same, 'sequence'), worst(same, 'sequence')];
            if (first === last) return [];
            const bytes = last.number('beforeBackwardBytes') / first.number('beforeBackwardBytes');
            return [Math.log2(bytes) / Math.log2(last.number('sequence') / first.number('sequence'))];
          });
          if (growths.length === 0) return [];
          return [`${attention} attention ${formatRatio(2 ** Math.max(...growths))}`];
        });
        return parts.length === 0
          ? null
          : `Each doubling of the sequence multiplies the saved memory, on average over the sweep, at most so: ${parts.join(', ')}. Plain attention ` +
              'keeps its weights, sequence² of them; flash attention recomputes them instead.';
      },
    },
  ],
};

function ofLength(rows: readonly AnsweringRow[], sequence: number): AnsweringRow[] {
  return rows.filter((row) => row.number('sequence') === sequence);
}

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
      ...{ secondsPerCell: { full: 0.8, quick: 4 }, wanted: 1 },
      shows: ['pass-times', 'compiled-beside-eager', 'time-'],
    },
    {
      name: 'torch_compile.models',
      words: {
        full: 'e2e --size small,medium,large,xl,2.7b --context 256 --execution eager,compiled --attention plain --dtype float32,bfloat16 --warmup 5 --steps 10',
        quick: 'e2e --size tiny --context 64 --execution eager,compiled --warmup 2 --steps 5',
      },
      ...{ secondsPerCell: { full: 1.4, quick: 9 }, wanted: 1 },
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
        const ratio = (row: (typeof rows)[number]) => row.number('compiledMs') / row.number('eagerMs');
        const parts = [...Map.groupBy(rows, (row) => row.text('pass'))].map(([pass, of]) => {
          const longest = ofLength(of, worst(of, 'sequence').number('sequence'));
          return `${pass} ${ratioWords(of.map(ratio))}, at sequence ${longest[0]!.text('sequence')} ${ratioWords(longest.map(ratio))}`;
        });
        const [short, long] = [best(rows, 'sequence'), worst(rows, 'sequence')].map((row) =>
          logAverage(ofLength(rows, row.number('sequence')).map(ratio)),
        );
        const why =
          short! < long!
            ? ' Less is gained the longer the sequence: programs save launches, and mask, scale and softmax are one kernel in ' +
              'eager attention already, so that they move no fewer bytes.'
            : '';
        return `Compiled, plain attention takes these parts of eager's time: ${parts.join('; ')}.${why}`;
      },
    },
    ...(['torch_compile.models', 'torch_compile.flash_models'] as const).map((run) => ({
      of: `${run}/compiled-beside-eager`,
      numbers: ['eagerMs', 'compiledMs'],
      say(rows: Parameters<Problem['answers'][number]['say']>[0]) {
        const parts = [...Map.groupBy(rows, (row) => row.text('mode'))].map(([mode, of]) => {
          const ratios = of.map((row) => row.number('compiledMs') / row.number('eagerMs'));
          return `${mode} **${formatRatio(logAverage(ratios))}** (${formatRatio(Math.min(...ratios))} to ${formatRatio(Math.max(...ratios))})`;
        });
        const attention = run.includes('flash') ? 'flash' : 'plain';
        return `With ${attention} attention a compiled model takes these parts of the eager one's time: ${parts.join('; ')}.`;
      },
    })),
    {
      of: 'torch_compile.programs/programs',
      numbers: ['compileMs'],
      say: (rows) =>
        `Compiling takes at most ${formatDuration(worst(rows, 'compileMs').number('compileMs'))} ` +
        `(${worst(rows, 'compileMs').text('size')}, ${worst(rows, 'compileMs').text('mode')}).`,
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
      ...{ secondsPerCell: { full: 6, quick: 8 }, wanted: 1 },
      shows: ['both-times'],
    },
  ],
  answers: [
    ...(['forward', 'backward', 'both'] as const).map((pass) => ({
      of: `flash_benchmarking.sweep/${pass}-times`,
      numbers: ['medianMs', 'sequence'],
      say(rows: Parameters<Problem['answers'][number]['say']>[0]) {
        const pairs = pairsOf(
          rows,
          ['headDimension', 'sequence', 'batch', 'heads', 'mask', 'dtype'],
          (row) => row.text('implementation') === 'flash',
          (row) => row.text('implementation') === 'plain',
        );
        if (pairs.length === 0) return null;
        const parts = [...Map.groupBy(pairs, ([row]) => row.text('dtype'))].map(([dtype, of]) => {
          const ratios = of.map(([flash, plain]) => plain.number('medianMs') / flash.number('medianMs'));
          const [longest] = of.toSorted(([a], [b]) => b.number('sequence') - a.number('sequence'));
          const [flash, plain] = longest!;
          return (
            `${dtype} **${formatRatio(logAverage(ratios))}** (${formatRatio(Math.min(...ratios))} to ` +
            `${formatRatio(Math.max(...ratios))}; at sequence ${flash.text('sequence')}, d ${flash.text('headDimension')}: ` +
            `${formatDuration(flash.number('medianMs'))} against ${formatDuration(plain.number('medianMs'))})`
          );
        });
        const what = pass === 'both' ? 'forward and backward together' : pass;
        return `Speed of FlashAttention over that of plain attention, ${what}, in the geometric mean: ${parts.join('; ')}.`;
      },
    })),
    {
      of: 'flash_benchmarking.tiles/tiles',
      numbers: ['medianMs', 'tileQueries', 'tileKeys'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => row.text('headDimension'))].map(
          ([headDimension, of]) => {
            const [fastest, slowest] = [best(of, 'medianMs'), worst(of, 'medianMs')];
            const said = (row: AnsweringRow) =>
              `${row.number('tileQueries')} × ${row.number('tileKeys')} (${formatDuration(row.number('medianMs'))})`;
            return `at d ${headDimension} ${said(fastest)} and ${said(slowest)}`;
          },
        );
        return `The fastest and the slowest tile of queries × keys that fit, forward: ${parts.join('; ')}.`;
      },
    },
    {
      of: 'flash_benchmarking.tiles/tiles',
      numbers: ['sharedBytes', 'registersPerThread', 'localBytesPerThread'],
      say(rows) {
        const spilled = rows.filter((row) => row.number('localBytesPerThread') > 0).length;
        return (
          `Tiles take ${formatBytes(best(rows, 'sharedBytes').number('sharedBytes'))} to ` +
          `${formatBytes(worst(rows, 'sharedBytes').number('sharedBytes'))} of shared memory and ` +
          `${best(rows, 'registersPerThread').number('registersPerThread')} to ` +
          `${worst(rows, 'registersPerThread').number('registersPerThread')} registers a thread; ${spilled} of ${rows.length} spill, ` +
          `at most ${formatBytes(worst(rows, 'localBytesPerThread').number('localBytesPerThread'))} a thread.`
        );
      },
    },
    {
      of: 'flash_benchmarking.leaderboard/both-times',
      numbers: ['medianMs', 'teraflopsPerSecond'],
      say(rows) {
        const row = best(rows, 'medianMs');
        return (
          `The case of the public leaderboard (batch 1, 16 heads, d 64, sequence 16384, causal, bfloat16, both passes) takes ` +
          `**${formatDuration(row.number('medianMs'))}**, ${row.number('teraflopsPerSecond').toFixed(0)} TFLOP/s.`
        );
      },
    },
  ],
};
