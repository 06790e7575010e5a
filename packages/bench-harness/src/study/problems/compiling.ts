import { logAverage } from 'simple-statistics';
import { meanAndRange } from '../../report/values-in-words.ts';
import type { Answer } from '../answer.ts';
import type { Problem } from '../problem.ts';
import type { AnsweringRow, Rows } from '../rows.ts';
import { attentionSizes } from './attention.ts';

const compiledOverEager = (row: AnsweringRow) => row.number('compiledMs') / row.number('eagerMs');

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
        full: `attention --attention plain --execution eager,compiled --batch 8 ${attentionSizes.full} --dtype float32,bfloat16 --steps 20`,
        quick: `attention --attention plain --execution eager,compiled ${attentionSizes.quick} --steps 5`,
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
        const at = (of: Rows, end: AnsweringRow) => of.where({ sequence: end.text('sequence') });
        const passes = rows.by('pass', (of, pass) => {
          const longest = of.most('sequence');
          return `${pass} ${of.ratios(compiledOverEager)}, at sequence ${longest.text('sequence')} ${at(of, longest).ratios(compiledOverEager)}`;
        });
        const [short, long] = [rows.least('sequence'), rows.most('sequence')].map((end) =>
          logAverage(at(rows, end).numbers(compiledOverEager)),
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
        const modes = rows.by('mode', (of, mode) => `${mode} ${meanAndRange(of.numbers(compiledOverEager))}`);
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
