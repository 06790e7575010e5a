import { formatBytes, formatPercent, formatRatio } from '@roofline/reports';
import type { AnsweringRow } from '../answer.ts';
import type { Problem } from '../problem.ts';
import { best, pairsOf, ratioWords, worst } from '../in-words.ts';

/** The gradients of a block in sizes of what it saves for the backward pass. */
function inSaved(row: AnsweringRow): string {
  return formatRatio(row.number('gradientBytes') / row.number('blockBytes'));
}

/** Where the memory of a step goes. */
export const memoryProfiling: Problem = {
  id: 'memory_profiling',
  title: 'Memory',
  question:
    'How does memory grow and shrink over a forward pass and over a whole step? What are the peaks by context, and with mixed precision? How large is one tensor of the residual stream, and where do the largest allocations come from?',
  runs: [
    {
      name: 'memory_profiling.large',
      words: {
        full: 'memory --size xl,2.7b --context 128,256,512,2048 --mode forward,train-step --dtype float32,bfloat16 --warmup 1 --steps 1',
        quick: null,
      },
      ...{ secondsPerCell: { full: 2.5, quick: 4 }, wanted: 1 },
      shows: ['memory-sweep', 'peak-by-context', 'allocations-', 'live-', 'largest-', 'saved-'],
    },
    {
      name: 'memory_profiling.small',
      words: {
        full: 'memory --size small,medium,large --context 128,256,512 --mode forward,train-step --dtype float32,bfloat16 --warmup 1 --steps 1',
        quick: 'memory --size tiny --context 64,128 --mode forward,train-step --warmup 1 --steps 2',
      },
      ...{ secondsPerCell: { full: 1.2, quick: 4 }, wanted: 2 },
      shows: ['memory-sweep', 'peak-by-context', 'allocations-', 'live-', 'largest-', 'saved-'],
    },
  ],
  answers: [
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes', 'context'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => `${row.text('size')}, ${row.text('dtype')}`)].flatMap(
          ([name, of]) => {
            const pairs = pairsOf(
              of,
              ['context'],
              (row) => row.text('mode') === 'forward',
              (row) => row.text('mode') === 'train-step',
            );
            const last = pairs.toSorted(([a], [b]) => a.number('context') - b.number('context')).at(-1);
            if (!last) return [];
            const [forward, step] = last.map((row) => formatBytes(row.number('peakBytes')));
            return [
              `${forward} forward and ${step} in the whole step (${name}, context ${last[0].text('context')})`,
            ];
          },
        );
        return parts.length === 0 ? null : `The peak is ${parts.join('; ')}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes', 'context'],
      say(rows) {
        const steps = rows.filter((row) => row.text('mode') === 'train-step');
        const parts = [...Map.groupBy(steps, (row) => `${row.text('size')}, ${row.text('dtype')}`)].flatMap(
          ([name, of]) => {
            const [first, last] = [best(of, 'context'), worst(of, 'context')];
            if (first === last) return [];
            return [
              `${formatRatio(last.number('peakBytes') / first.number('peakBytes'))} for ${name} from context ` +
                `${first.text('context')} to ${last.text('context')}`,
            ];
          },
        );
        return parts.length === 0
          ? null
          : `A whole step's peak grows by ${parts.join('; ')}: weights, gradients and moments do not depend on the context, and activations do.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes'],
      say(rows) {
        const pairs = pairsOf(
          rows,
          ['size', 'context', 'mode'],
          (row) => row.text('dtype') === 'bfloat16',
          (row) => row.text('dtype') === 'float32',
        );
        if (pairs.length === 0) return null;
        const parts = [...Map.groupBy(pairs, ([row]) => row.text('mode'))].map(
          ([mode, of]) =>
            `${mode} ${ratioWords(of.map(([low, high]) => low.number('peakBytes') / high.number('peakBytes')))}`,
        );
        return `In mixed precision the peak is these parts of float32's: ${parts.join('; ')}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['residualBytes'],
      say(rows) {
        const last = worst(rows, 'residualBytes');
        return (
          `One tensor of the residual stream, batch × context × model dimension × the bytes of its dtype, takes ` +
          `**${formatBytes(last.number('residualBytes'))}** in ${last.text('size')} at context ${last.text('context')}, ` +
          `${last.text('dtype')}.`
        );
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['blockBytes', 'residualBytes', 'context'],
      say(rows) {
        const of = rows.filter((row) => row.text('size') === worst(rows, 'blockBytes').text('size'));
        const last = worst(of, 'context');
        const first = best(of, 'context');
        const at = (row: typeof last) =>
          `${formatBytes(row.number('blockBytes'))} at context ${row.text('context')}`;
        const inStreams = (row: typeof last) =>
          formatRatio(row.number('blockBytes') / row.number('residualBytes'));
        const growth =
          first === last
            ? ''
            : ` and ${at(first)}: ${inStreams(first)} the residual stream there and ${inStreams(last)} here, since the scores ` +
              'of plain attention grow with the square of the context';
        return `One block of ${last.text('size')} saves ${at(last)} for the backward pass${growth}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['gradientBytes', 'blockBytes'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => row.text('size'))].map(([size, of]) => {
          const most = worst(of, 'gradientBytes');
          return `${formatBytes(most.number('gradientBytes'))} in ${size}, ${inSaved(most)} what it saves at context ${most.text('context')}`;
        });
        return `The gradients that the backward pass leaves of one block take, at any context: ${parts.join('; ')}.`;
      },
    },
    {
      of: 'memory_profiling.*/largest-allocations',
      numbers: ['bytes'],
      say(rows) {
        const top = worst(rows, 'bytes');
        const tensor = top.text('tensor');
        return (
          `The largest allocations take **${formatBytes(top.number('bytes'))}** each (\`${top.text('op')}\`` +
          `${tensor ? `, ${tensor}` : ''}), made in \`${top.text('range')}\`${top.text('origin') ? ` by \`${top.text('origin')}\`` : ''}.`
        );
      },
    },
    {
      of: 'memory_profiling.*/live-at-the-peak',
      numbers: ['share'],
      say(rows) {
        const parts = [...Map.groupBy(rows, (row) => row.text('phase'))].map(([phase, of]) => {
          const top = worst(of, 'share');
          return `${phase} ${top.text('what')} (${formatPercent(top.number('share'))})`;
        });
        return `What takes most of the memory at the peak of each phase: ${parts.join('; ')}.`;
      },
    },
  ],
};

/** What recomputing activations saves, and what it costs. */
export const gradientCheckpointing: Problem = {
  id: 'gradient_checkpointing',
  title: 'Recomputation',
  question:
    'How far does the peak of a step fall where the backward pass recomputes activations instead of keeping them, what time does that cost, and does the peak follow the formula of each policy?',
  runs: [
    {
      name: 'gradient_checkpointing',
      words: {
        full: 'memory --size 2.7b --context 2048 --batch 1 --mode train-step --dtype bfloat16 --attention flash --recompute none,block,2,4,8,attention-kept,recursive',
        quick:
          'memory --size tiny --context 128 --mode forward-backward --dtype float32 --recompute none,block,2,attention-kept,recursive --warmup 1 --steps 2',
      },
      ...{ secondsPerCell: { full: 4, quick: 4 }, wanted: 1 },
      shows: ['made-again', 'recompute-peak'],
    },
  ],
  answers: [
    {
      of: 'gradient_checkpointing/made-again',
      numbers: ['peakBytes', 'peakRatio', 'timeRatio'],
      say(rows) {
        const least = best(recomputing(rows), 'peakBytes');
        return (
          `The lowest peak, **${formatBytes(least.number('peakBytes'))}**, is that of \`--recompute ${least.text('recompute')}\`: ` +
          `${formatRatio(least.number('peakRatio'))} the peak of a step that keeps all of its activations, in ` +
          `${formatRatio(least.number('timeRatio'))} the time.`
        );
      },
    },
    {
      of: 'gradient_checkpointing/made-again',
      numbers: ['predictedBytes', 'peakBytes'],
      say(rows) {
        const ratios = recomputing(rows).map((row) => row.number('predictedBytes') / row.number('peakBytes'));
        return `The formulas of the policies predict peaks of ${ratioWords(ratios)} those measured.`;
      },
    },
  ],
};

/** The steps that recompute something; the others are what they are compared with. */
function recomputing(rows: readonly AnsweringRow[]): AnsweringRow[] {
  return rows.filter((row) => row.text('recompute') !== 'none');
}
