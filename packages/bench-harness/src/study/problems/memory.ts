import { formatRatio } from '@roofline/reports';
import { valuesInWords } from '../../report/values-in-words.ts';
import type { Problem } from '../problem.ts';
import { ratioWords, type AnsweringRow } from '../rows.ts';

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
      ...{ secondsPerCell: { full: 3.2, quick: 4 }, wanted: 1 },
      shows: ['memory-sweep', 'peak-by-context', 'allocations-', 'live-', 'largest-', 'saved-'],
    },
    {
      name: 'memory_profiling.small',
      words: {
        full: 'memory --size small,medium,large --context 128,256,512 --mode forward,train-step --dtype float32,bfloat16 --warmup 1 --steps 1',
        quick: 'memory --size tiny --context 64,128 --mode forward,train-step --warmup 1 --steps 2',
      },
      ...{ secondsPerCell: { full: 2.1, quick: 4 }, wanted: 2 },
      shows: ['memory-sweep', 'peak-by-context', 'allocations-', 'live-', 'largest-', 'saved-'],
    },
  ],
  answers: [
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes', 'context'],
      say(rows) {
        const at = (row: AnsweringRow) =>
          `**${row.bytes('peakBytes')}** (${row.text('size')}, ${row.text('dtype')}, context ${row.text('context')})`;
        const modes = rows.by('mode', (of, mode) => {
          const ends = [...new Set([of.least('peakBytes'), of.most('peakBytes')])];
          return `${mode} at ${ends.map(at).join(' to ')}`;
        });
        return `Memory peaks: ${modes}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes', 'context'],
      say(rows) {
        const growths = rows
          .where({ mode: 'train-step' })
          .groups(['size', 'dtype'])
          .flatMap(([model, of]) => {
            const [first, last] = [of.least('context'), of.most('context')];
            if (first === last) return [];
            const name = `${model} from context ${first.text('context')} to ${last.text('context')}`;
            return [{ name, value: last.number('peakBytes') / first.number('peakBytes') }];
          });
        if (growths.length === 0) return null;
        return (
          `A whole step's peak grows by ${valuesInWords(growths, formatRatio)}: weights, gradients and moments do not depend on ` +
          'the context, and activations do.'
        );
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['peakBytes'],
      say(rows) {
        const modes = rows
          .pairs(['size', 'context', 'mode'], 'dtype', ['bfloat16', 'float32'])
          .by('mode', (of, mode) => `${mode} ${ratioWords(of.overBeside('peakBytes'))}`);
        return `In mixed precision the peak is these parts of float32's: ${modes}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['residualBytes'],
      say(rows) {
        const last = rows.most('residualBytes');
        return (
          `One tensor of the residual stream, batch × context × model dimension × the bytes of its dtype, takes ` +
          `**${last.bytes('residualBytes')}** in ${last.text('size')} at context ${last.text('context')}, ${last.text('dtype')}.`
        );
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['blockBytes', 'residualBytes', 'context'],
      say(rows) {
        const of = rows.where({ size: rows.most('blockBytes').text('size') });
        const [first, last] = [of.least('context'), of.most('context')];
        const at = (row: AnsweringRow) => `${row.bytes('blockBytes')} at context ${row.text('context')}`;
        const growth =
          first === last
            ? ''
            : ` and ${at(first)}: ${first.over('blockBytes', 'residualBytes')} the residual stream there and ` +
              `${last.over('blockBytes', 'residualBytes')} here, since the scores of plain attention grow with the square of the context`;
        return `One block of ${last.text('size')} saves ${at(last)} for the backward pass${growth}.`;
      },
    },
    {
      of: 'memory_profiling.*/memory-sweep',
      numbers: ['gradientBytes', 'blockBytes', 'context'],
      say(rows) {
        const sizes = rows.groups('size');
        const measured = sizes.map(([, of]) => new Set(of.numbers('context')));
        const context = Math.max(...measured.reduce((common, other) => common.intersection(other)));
        if (context === -Infinity) return null;
        const parts = sizes.map(([size, of]) => {
          const most = of.filter((row) => row.number('context') === context).most('gradientBytes');
          return `${most.bytes('gradientBytes')} in ${size}, ${most.over('gradientBytes', 'blockBytes')}`;
        });
        return `The gradients that the backward pass leaves of one block take, next to what the block saves at context ${context}: ${parts.join('; ')}.`;
      },
    },
    {
      of: 'memory_profiling.*/largest-allocations',
      numbers: ['bytes'],
      say(rows) {
        const top = rows.most('bytes');
        const [tensor, origin] = [top.text('tensor'), top.text('origin')];
        return (
          `The largest allocations take **${top.bytes('bytes')}** each (\`${top.text('op')}\`${tensor && `, ${tensor}`}), ` +
          `made in \`${top.text('range')}\`${origin && ` by \`${origin}\``}.`
        );
      },
    },
    {
      of: 'memory_profiling.*/live-at-the-peak',
      numbers: ['share'],
      say(rows) {
        const phases = rows.by('phase', (of, phase) => {
          const top = of.most('share');
          return `${phase} ${top.text('what')} (${top.percent('share')})`;
        });
        return `What takes most of the memory at the peak of each phase: ${phases}.`;
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
        full: 'memory --size 2.7b --context 2048 --batch 8 --mode train-step --dtype bfloat16 --attention flash --recompute none,block,2,4,8,attention-kept,recursive',
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
        const least = rows.filter(recomputes).least('peakBytes');
        return (
          `The lowest peak, **${least.bytes('peakBytes')}**, is that of \`--recompute ${least.text('recompute')}\`: ` +
          `${formatRatio(least.number('peakRatio'))} the peak of a step that keeps all of its activations, in ` +
          `${formatRatio(least.number('timeRatio'))} the time.`
        );
      },
    },
    {
      of: 'gradient_checkpointing/made-again',
      numbers: ['predictedBytes', 'peakBytes'],
      say: (rows) =>
        'The formulas of the policies predict peaks of ' +
        `${rows.filter(recomputes).ratios((row) => row.number('predictedBytes') / row.number('peakBytes'))} those measured.`,
    },
  ],
};

/** Whether a step recomputes something; the others are what they are compared with. */
function recomputes(row: AnsweringRow): boolean {
  return row.text('recompute') !== 'none';
}
