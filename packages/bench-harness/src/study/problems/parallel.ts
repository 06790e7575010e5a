import { formatDuration, formatPercent, formatRatio } from '@roofline/reports';
import { sizeInWords } from '../../benchmarks/allreduce/sizes.ts';
import type { Answer } from '../answer.ts';
import type { Problem, StudyRun } from '../problem.ts';
import { ratioWords, type AnsweringRow } from '../rows.ts';

/** Collectives by size, ranks and backend. */
export const distributedCommunication: Problem = {
  id: 'distributed_communication_single_node',
  title: 'All-reduce',
  question:
    'How long does an all-reduce take by size, by number of ranks and by backend, and what bandwidth does that come to?',
  runs: [
    {
      name: 'distributed_communication_single_node.nccl',
      words: { full: 'allreduce --backend nccl --size 1MB,10MB,100MB,1GB --device cuda', quick: null },
      ...{ secondsPerCell: { full: 19, quick: 10 }, wanted: 1, gpus: 2 },
      shows: ['collectives', 'latency-and-bandwidth'],
    },
    {
      name: 'distributed_communication_single_node.gloo',
      words: {
        full: 'allreduce --backend gloo --size 1MB,10MB,100MB,1GB --nproc 2,4,6 --rounds 2',
        quick: 'allreduce --backend gloo --size 1MB,10MB --nproc 2 --rounds 3',
      },
      ...{ secondsPerCell: { full: 8, quick: 8 }, wanted: 3 },
      shows: ['collectives', 'latency-and-bandwidth'],
    },
  ],
  together: ['time-by-size', 'time-by-ranks', 'busbw-by-size'],
  answers: [
    {
      of: 'distributed_communication_single_node.*/collectives',
      numbers: ['in-place-us', 'in-place-busbw', 'bytes', 'ranks'],
      say(rows) {
        const at = (row: AnsweringRow) =>
          `${formatDuration(row.number('in-place-us') / 1000)} for ${sizeInWords(row.number('bytes'))}`;
        const backends = rows.by(['backend', 'ranks'], (of, name) => {
          const ends = [...new Set([of.least('bytes'), of.most('bytes')])];
          const bandwidth = ends.at(-1)!.number('in-place-busbw').toPrecision(3);
          return `${name} ranks: ${ends.map(at).join(', ')} (${bandwidth} GB/s on the bus)`;
        });
        return `An all-reduce takes, by backend and ranks: ${backends}.`;
      },
    },
  ],
};

/** The command of steps on two ranks, in these modes. */
function ddpWords(modes: string): StudyRun['words'] {
  return {
    full: `ddp --backend nccl --size xl --dtype bfloat16 --context 512 --mode ${modes} --nproc 2 --steps 8`,
    quick: `ddp --backend gloo --size tiny --mode ${modes} --nproc 2 --steps 4`,
  };
}

/** What a rank sends, next to what ZeRO's formula says, by what is compared. */
function volumeAnswer(run: string, by: 'optimizer' | 'mode'): Answer {
  return {
    of: `${run}/ddp-volume`,
    numbers: ['sentBytes', 'zeroBytes'],
    say(rows) {
      const parts = rows.by(
        by,
        ({ first: row }, name) =>
          `${name} ${row.bytes('sentBytes')}, ${row.over('sentBytes', 'zeroBytes')} the ${row.bytes('zeroBytes')} of ZeRO's formula`,
      );
      return `In a step a rank sends, by ${by}: ${parts}.`;
    },
  };
}

const ddpCost = { secondsPerCell: { full: 11, quick: 10 }, gpus: 2 } as const;

/** Data-parallel steps: when gradients are reduced, and what is hidden. */
export const dataParallel: Problem = {
  id: 'ddp',
  title: 'Data parallelism: one by one, flat, overlapped',
  question:
    'How long does a data-parallel step take, which share of it is communication, and how much of that is hidden by the backward pass, with gradients reduced one by one, in one buffer, and in buckets as they come?',
  runs: [
    {
      name: 'ddp.modes',
      words: ddpWords('naive,flat,overlap'),
      ...{ ...ddpCost, wanted: 1 },
      shows: ['ddp', 'ddp-times', 'timeline-'],
    },
  ],
  answers: [
    {
      of: 'ddp.modes/ddp',
      numbers: ['stepMs', 'communicationMs', 'exposedMs'],
      say(rows) {
        const modes = rows.by('mode', ({ first: row }, mode) => {
          const share = formatPercent(row.number('exposedMs') / row.number('stepMs'));
          return (
            `${mode} ${row.duration('stepMs')}, of which communication adds ${row.duration('exposedMs')} (${share}; alone it takes ` +
            `${row.duration('communicationMs')})`
          );
        });
        return `A step takes: ${modes}.`;
      },
    },
    {
      of: 'ddp.modes/ddp',
      numbers: ['hiddenShare', 'stepMs'],
      say(rows) {
        const [overlap, naive] = [rows.where({ mode: 'overlap' }).first, rows.where({ mode: 'naive' }).first];
        return (
          `Overlapped, ${overlap.percent('hiddenShare')} of the communication runs alongside computation, and a step ` +
          `takes ${ratioWords([overlap.number('stepMs') / naive.number('stepMs')])} the time of one that reduces its gradients ` +
          'after the backward pass.'
        );
      },
    },
  ],
};

/** The optimizer's state, split over ranks. */
export const optimizerStateSharding: Problem = {
  id: 'optimizer_state_sharding',
  title: 'Sharded optimizer state',
  question:
    'What does a rank hold before and after the optimizer step, with the state whole and sharded, what do formulas say, and what does sharding cost a step?',
  runs: [
    {
      name: 'optimizer_state_sharding',
      words: ddpWords('overlap --optimizer whole,sharded'),
      ...{ ...ddpCost, wanted: 1 },
      shows: ['ddp', 'ddp-memory', 'ddp-volume', 'ddp-times'],
    },
  ],
  answers: [
    {
      of: 'optimizer_state_sharding/ddp-memory',
      numbers: ['beforeStepBytes', 'afterStepBytes', 'stateBytes', 'formulaBytes'],
      say(rows) {
        const optimizers = rows.by('optimizer', (of, optimizer) => {
          const row = of.most('afterStepBytes');
          return (
            `${optimizer} ${row.bytes('beforeStepBytes')} before the step and ${row.bytes('afterStepBytes')} ` +
            `after it, the state ${row.bytes('stateBytes')} where ${row.bytes('formulaBytes')} are expected`
          );
        });
        return `A rank holds, with the optimizer's state ${optimizers}.`;
      },
    },
    volumeAnswer('optimizer_state_sharding', 'optimizer'),
    {
      of: 'optimizer_state_sharding/ddp',
      numbers: ['stepMs', 'optimizerMs'],
      say(rows) {
        const keys = ['size', 'context', 'batch', 'dtype', 'worldSize', 'mode'];
        const sharded = rows.pairs(keys, 'optimizer', ['sharded', 'whole']).first;
        const whole = sharded.beside!;
        return (
          `A step takes ${sharded.duration('stepMs')} sharded and ${whole.duration('stepMs')} whole ` +
          `(${formatRatio(sharded.number('stepMs') / whole.number('stepMs'))}); the optimizer's part of it ` +
          `${sharded.duration('optimizerMs')} and ${whole.duration('optimizerMs')}: sharded, each rank ` +
          'updates its own part and gathers the others.'
        );
      },
    },
  ],
};

/** Parameters, gradients and state, split over ranks. */
export const fullySharded: Problem = {
  id: 'fsdp',
  title: 'Sharded parameters',
  question:
    'What does a rank hold where parameters are sharded too, and how long does a step take whose blocks gather them, next to one whose ranks each hold all?',
  runs: [
    {
      name: 'fsdp',
      words: ddpWords('overlap,fsdp'),
      ...{ ...ddpCost, wanted: 2 },
      shows: ['ddp', 'ddp-memory', 'ddp-volume', 'ddp-times', 'timeline-'],
    },
  ],
  answers: [
    {
      of: 'fsdp/ddp-memory',
      numbers: ['builtBytes', 'peakBytes'],
      say(rows) {
        const modes = rows.by('mode', (of, mode) => {
          const row = of.most('peakBytes');
          return `${mode} ${row.bytes('builtBytes')} once built and ${row.bytes('peakBytes')} at the peak of a step`;
        });
        return `The rank that holds the most holds, by mode: ${modes}.`;
      },
    },
    volumeAnswer('fsdp', 'mode'),
    {
      of: 'fsdp/ddp',
      numbers: ['stepMs', 'communicationMs'],
      say(rows) {
        const modes = rows.by(
          'mode',
          ({ first: row }, mode) =>
            `${mode} ${row.duration('stepMs')} (its communication alone ${row.duration('communicationMs')})`,
        );
        return `A step takes: ${modes}.`;
      },
    },
  ],
};
