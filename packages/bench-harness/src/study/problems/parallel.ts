import { formatBytes, formatDuration, formatPercent, formatRatio } from '@roofline/reports';
import { sizeInWords } from '../../benchmarks/allreduce/sizes.ts';
import type { Answer } from '../answer.ts';
import type { Problem, StudyRun } from '../problem.ts';
import { best, pairsOf, ratioWords, worst } from '../in-words.ts';

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
      ...{ secondsPerCell: { full: 10, quick: 10 }, wanted: 1, gpus: 2 },
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
        const parts = [
          ...Map.groupBy(rows, (row) => `${row.text('backend')}, ${row.text('ranks')} ranks`),
        ].map(([name, of]) => {
          const [small, large] = [best(of, 'bytes'), worst(of, 'bytes')];
          const at = (row: typeof small) =>
            `${formatDuration(row.number('in-place-us') / 1000)} for ${sizeInWords(row.number('bytes'))}`;
          return `${name}: ${small === large ? at(small) : `${at(small)}, ${at(large)}`} (${large.number('in-place-busbw').toPrecision(3)} GB/s on the bus)`;
        });
        return `An all-reduce takes, by backend and ranks: ${parts.join('; ')}.`;
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
      const parts = rows.map(
        (row) =>
          `${row.text(by)} ${formatBytes(row.number('sentBytes'))}, ` +
          `${formatRatio(row.number('sentBytes') / row.number('zeroBytes'))} the ${formatBytes(row.number('zeroBytes'))} of ZeRO's formula`,
      );
      return `In a step a rank sends, by ${by}: ${parts.join('; ')}.`;
    },
  };
}

const ddpCost = { secondsPerCell: { full: 25, quick: 10 }, gpus: 2 } as const;

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
        const parts = rows.map(
          (row) =>
            `${row.text('mode')} ${formatDuration(row.number('stepMs'))}, of which communication adds ` +
            `${formatDuration(row.number('exposedMs'))} (${formatPercent(row.number('exposedMs') / row.number('stepMs'))}; alone it ` +
            `takes ${formatDuration(row.number('communicationMs'))})`,
        );
        return `A step takes: ${parts.join('; ')}.`;
      },
    },
    {
      of: 'ddp.modes/ddp',
      numbers: ['hiddenShare', 'stepMs'],
      say(rows) {
        const [overlap, naive] = ['overlap', 'naive'].map((mode) =>
          rows.find((row) => row.text('mode') === mode),
        );
        if (!overlap || !naive) return null;
        return (
          `Overlapped, ${formatPercent(overlap.number('hiddenShare'))} of the communication runs alongside computation, and a step ` +
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
        const parts = [...Map.groupBy(rows, (row) => row.text('optimizer'))].map(([optimizer, of]) => {
          const row = worst(of, 'afterStepBytes');
          return (
            `${optimizer} ${formatBytes(row.number('beforeStepBytes'))} before the step and ${formatBytes(row.number('afterStepBytes'))} ` +
            `after it, the state ${formatBytes(row.number('stateBytes'))} where ${formatBytes(row.number('formulaBytes'))} are expected`
          );
        });
        return `A rank holds, with the optimizer's state ${parts.join('; ')}.`;
      },
    },
    volumeAnswer('optimizer_state_sharding', 'optimizer'),
    {
      of: 'optimizer_state_sharding/ddp',
      numbers: ['stepMs', 'optimizerMs'],
      say(rows) {
        const [pair] = pairsOf(
          rows,
          ['size', 'context', 'batch', 'dtype', 'worldSize', 'mode'],
          (row) => row.text('optimizer') === 'sharded',
          (row) => row.text('optimizer') === 'whole',
        );
        if (!pair) return null;
        const [sharded, whole] = pair;
        return (
          `A step takes ${formatDuration(sharded.number('stepMs'))} sharded and ${formatDuration(whole.number('stepMs'))} whole ` +
          `(${formatRatio(sharded.number('stepMs') / whole.number('stepMs'))}); the optimizer's part of it ` +
          `${formatDuration(sharded.number('optimizerMs'))} and ${formatDuration(whole.number('optimizerMs'))}: sharded, each rank ` +
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
        const byMode = [...Map.groupBy(rows, (row) => row.text('mode'))].map(([mode, of]) => {
          const row = worst(of, 'peakBytes');
          return `${mode} ${formatBytes(row.number('builtBytes'))} once built and ${formatBytes(row.number('peakBytes'))} at the peak of a step`;
        });
        return `The rank that holds the most holds, by mode: ${byMode.join('; ')}.`;
      },
    },
    volumeAnswer('fsdp', 'mode'),
    {
      of: 'fsdp/ddp',
      numbers: ['stepMs', 'communicationMs'],
      say(rows) {
        const byMode = rows.map(
          (row) =>
            `${row.text('mode')} ${formatDuration(row.number('stepMs'))} (its communication alone ${formatDuration(row.number('communicationMs'))})`,
        );
        return `A step takes: ${byMode.join('; ')}.`;
      },
    },
  ],
};
