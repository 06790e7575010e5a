import { formatDuration, formatPercent, formatRatio } from '@roofline/reports';
import { logAverage } from 'simple-statistics';
import { variantWords, e2eDtypes, modes, sizeName, type E2eDType, type Mode } from '../parameters.ts';
import { canonicalJson } from '../../../records/json.ts';
import { replaysGraphs } from '../../../execution/kinds.ts';
import { beatenRoofSentence } from '../../../report/beaten-roof.ts';
import type { E2eMeasurement, Measured } from './interpret.ts';

type MeasuredCell = E2eMeasurement & { measured: Measured };

/** The findings, one sentence each, computed from the records, the most telling first. */
export function e2eSummary(measurements: readonly E2eMeasurement[]): string[] {
  const measured = measurements.filter((each): each is MeasuredCell => each.measured !== null);
  return [
    ...ratioSentence(measured),
    ...roofSentence(measured),
    ...memorySentence(measured),
    ...e2eDtypes.flatMap((dtype) => modes.flatMap((mode) => precisionSentence(measured, dtype, mode))),
    countSentence(measurements),
  ];
}

function countSentence(measurements: readonly E2eMeasurement[]): string {
  const device = measurements[0]!.record.environment.device.name;
  const count = (status: string) => measurements.filter(({ record }) => record.status === status).length;
  const outcomes = [
    [count('out-of-memory'), 'ran out of memory'],
    [count('timeout'), 'took longer than allowed'],
    [count('failed'), 'failed'],
  ] as const;
  const rest = outcomes.filter(([number]) => number > 0).map(([number, how]) => `${number} ${how}`);
  const total = measurements.length;
  const whole = `${count('ok')} of ${total} ${total === 1 ? 'cell' : 'cells'} measured on ${device}`;
  return `${[whole, ...rest].join('; ')}.`;
}

function roofSentence(measured: readonly MeasuredCell[]): string[] {
  const known = measured
    .filter(({ measured: { roofShare } }) => roofShare !== null)
    .sort((a, b) => b.measured.roofShare! - a.measured.roofShare!);
  const isMixed = new Set(known.map(({ cell }) => cell.dtype)).size > 1;
  const name = ({ cell }: E2eMeasurement) => {
    const { size, mode, context, dtype } = cell;
    return [size, mode, `context ${context}`, ...(isMixed ? [dtype] : []), ...variantWords(cell)].join(', ');
  };
  const beaten = beatenRoofSentence(
    known.map((each) => ({
      ...{ name: name(each), dtype: each.cell.dtype, record: each.record },
      flopsPerSecond: each.measured.flopsPerSecond,
    })),
  );
  const [best, worst] = [known[0], known.at(-1)];
  if (beaten.length > 0 || !best || !worst) return beaten;
  const share = ({ measured: { roofShare } }: MeasuredCell) => `**${formatPercent(roofShare!)}**`;
  const floor = ({ measured: { device, floorMs } }: MeasuredCell) =>
    `${formatDuration(device.median)} against a floor of ${formatDuration(floorMs!)}`;
  const first = `Closest to the roof: ${share(best)} (${name(best)}: ${floor(best)}).`;
  return best === worst ? [first] : [first, `Farthest from it: ${share(worst)} (${name(worst)}).`];
}

/** Every mode in one sentence: its ratio, or the geometric mean of several with the least and the most. */
function ratioSentence(measured: readonly MeasuredCell[]): string[] {
  const told = modes.flatMap((mode) => {
    const ratios = measured
      .filter(({ cell }) => cell.mode === mode)
      .flatMap((each) => each.measured.peer?.ratio.ratio ?? []);
    if (ratios.length === 0) return [];
    const mean = `mode \`${mode}\` takes **${formatRatio(logAverage(ratios))}**`;
    if (ratios.length === 1) return [mean];
    return [`${mean} (${formatRatio(Math.min(...ratios))} to ${formatRatio(Math.max(...ratios))})`];
  });
  if (told.length === 0) return [];
  const peers = measured.flatMap(({ cell, measured: { result } }) =>
    result.peer?.status === 'ok' ? [{ version: result.peer.torch, execution: cell.peerExecution }] : [],
  );
  const ways = [...new Set(peers.map(({ execution }) => execution))].join(' and ');
  return [`Of the time of PyTorch ${peers[0]!.version} (${ways}), ${told.join(', ')}.`];
}

function memorySentence(measured: readonly MeasuredCell[]): string[] {
  const ratios = measured.flatMap((each) => each.measured.peer?.memoryRatio ?? []);
  if (ratios.length === 0) return [];
  const [low, high] = [formatRatio(Math.min(...ratios)), formatRatio(Math.max(...ratios))];
  const reserved = measured.some(({ cell }) => replaysGraphs(cell.peerExecution));
  const counted = reserved ? ', of reserved memory where that replays CUDA graphs' : '';
  return [`Peak memory is ${low === high ? low : `between ${low} and ${high}`} that of PyTorch${counted}.`];
}

/** How much a lower precision gains, and how that follows the size of the model. */
function precisionSentence(measured: readonly MeasuredCell[], dtype: E2eDType, mode: Mode): string[] {
  const work = ({ cell }: MeasuredCell) => canonicalJson({ ...cell, dtype: 'float32' });
  const float32 = new Map(
    measured.filter(({ cell }) => cell.dtype === 'float32').map((each) => [work(each), each]),
  );
  const gains = measured
    .filter(({ cell }) => dtype !== 'float32' && cell.dtype === dtype && cell.mode === mode)
    .sort((a, b) => a.measured.result.parameterCount - b.measured.result.parameterCount)
    .flatMap((each) => {
      const slow = float32.get(work(each))?.measured;
      return slow
        ? [{ size: sizeName(each.cell), gain: slow.device.median / each.measured.device.median }]
        : [];
    });
  const [smallest, largest] = [gains[0], gains.at(-1)];
  if (!smallest || !largest) return [];
  const told = (each: typeof smallest) => `**${formatRatio(each.gain)}** for ${each.size}`;
  const speed = `Mode \`${mode}\` runs in ${dtype} at ${told(smallest)}`;
  if (gains.length === 1) return [`${speed}, against float32.`];
  return [`${speed} and ${told(largest)}, against float32${trend(gains.map(({ gain }) => gain))}.`];
}

/** Said only where each size follows the one before. */
function trend(values: readonly number[]): string {
  const isRising = values.every((value, index) => index === 0 || value > values[index - 1]!);
  const isFalling = values.every((value, index) => index === 0 || value < values[index - 1]!);
  if (isRising) return ': the gain grows with the size';
  return isFalling ? ': the gain shrinks with the size' : '';
}
