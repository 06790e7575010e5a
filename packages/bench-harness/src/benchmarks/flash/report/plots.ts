import type { Plot } from '@roofline/reports';
import { shapePlots } from '../../../attention/shape-plots.ts';
import type { Pass } from '../../../attention/work.ts';
import { nameOf, timeOf, type MeasuredPass, type TimedPass } from './measured.ts';
import { lowOf } from './tables.ts';

/** Those of one pass; a cell without a result names no attention. */
function ofPass(passes: readonly TimedPass[], pass: Pass): MeasuredPass[] {
  return passes.filter((each): each is MeasuredPass => each.pass === pass && each.timed !== null);
}

/** Time against the sequence, one plot for each shape but for that. */
export function timePlots(passes: readonly TimedPass[], pass: Pass): Plot[] {
  return shapePlots(
    {
      ...{ id: `${pass}-time`, title: 'Time against sequence', name: nameOf },
      caption: 'Medians; error bars from a fifth of the samples to four fifths. Both axes logarithmic.',
      y: { label: 'Time', unit: 'ms', scale: 'log' },
      values: (each) => {
        const time = timeOf(each);
        return time && { y: time.time.median, low: lowOf(each, 0.2)!, high: lowOf(each, 0.8)! };
      },
    },
    ofPass(passes, pass),
  );
}

/** What each attention reaches, next to each peer and the measured ceiling of matrix products. */
export function throughputPlots(passes: readonly TimedPass[], pass: Pass): Plot[] {
  return shapePlots(
    {
      ...{ id: `${pass}-throughput`, title: 'TFLOP/s by sequence', marks: 'bar', name: nameOf },
      caption: 'FLOPs by formula, a causal mask halving them, over the median time.',
      y: { label: 'Achieved', unit: 'TFLOP/s', scale: 'linear' },
      values: (each) => {
        const time = timeOf(each);
        return time && time.flopsPerSecond / 1e12;
      },
      references: ([first]) => {
        const peak = first!.record.ceilings?.matmulFlopsPerSecond[first!.cell.dtype];
        return peak === undefined ? undefined : [{ label: 'matrix products', y: peak / 1e12 }];
      },
    },
    ofPass(passes, pass),
  );
}

/** Peak memory against the sequence; it is that of both passes, whichever pass is given. */
export function memoryPlots(passes: readonly TimedPass[], pass: Pass): Plot[] {
  return shapePlots(
    {
      ...{ id: 'peak-memory', title: 'Peak memory against sequence', name: nameOf },
      caption: 'Of operands and one forward and backward pass. Both axes logarithmic.',
      y: { label: 'Memory', unit: 'MiB', scale: 'log' },
      values: ({ timed: { outcome } }) =>
        outcome.status === 'ok' && outcome.peakBytes !== null ? outcome.peakBytes / 2 ** 20 : null,
    },
    ofPass(passes, pass),
  );
}
