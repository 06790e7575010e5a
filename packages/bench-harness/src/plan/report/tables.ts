import { formatBytes, formatDuration, formatNumber, type Row, type Table } from '@roofline/reports';
import { possibleLayouts, type Plan, type PossibleLayout } from '../plan.ts';
import { MOST_GPUS } from '../bound.ts';
import { plainValues } from '../../parameters/parameter-columns.ts';

const rowsOf = (plan: Plan, values: (each: PossibleLayout) => Row): Row[] =>
  possibleLayouts(plan).map((each) => ({ layout: each.layout.name, ...values(each) }));

const layoutColumn = { key: 'layout', label: 'Layout', kind: 'text', emphasis: 'strong' } as const;
const ms = (key: string, label: string, description: string) =>
  ({ key, label, kind: 'duration', unitGroup: 'time', description }) as const;
const bytes = (key: string, label: string, description: string) =>
  ({ key, label, kind: 'bytes', unitGroup: 'held', description }) as const;

/** One row a layout, the best first. */
export function layoutTable(plan: Plan): Table {
  return {
    ...{ kind: 'table', id: 'layouts', title: 'Layouts, the best first' },
    caption:
      settingWords(plan) +
      ' Every layout takes the same tokens in a step: GPUs that share layers or sequences have those of all of them together.',
    columns: [
      layoutColumn,
      ms('stepMs', 'Step', 'Computation, and what communication adds to it.'),
      ms('computationMs', 'Computation', 'Forward, backward and optimizer of one GPU.'),
      ms('communicationMs', 'Communication', 'All collectives of a step with nothing alongside.'),
      {
        key: 'savedShare',
        label: 'Saved',
        kind: 'percent',
        description: 'The share of it that the step is spared.',
      },
      {
        key: 'utilization',
        label: 'Utilization',
        kind: 'percent',
        description: 'Products without those made again, over the ceiling.',
      },
      bytes('peakBytes', 'Peak memory', 'The most on one GPU at once.'),
      { key: 'fits', label: 'Fits', kind: 'text' },
      { key: 'sentBytes', label: 'Sent', kind: 'bytes', description: 'By each GPU in a step.' },
    ],
    rows: rowsOf(plan, ({ step }) => ({
      ...{ stepMs: step.stepMs, computationMs: step.computationMs, communicationMs: step.communicationMs },
      savedShare: step.communicationMs === 0 ? null : 1 - step.exposedMs / step.communicationMs,
      ...{ utilization: step.utilization, peakBytes: step.memory.peak, fits: step.fits ? 'yes' : 'no' },
      sentBytes: step.sentBytes,
    })),
  };
}

function settingWords({ request, setting, planner: { machine } }: Plan): string {
  const { gpus, perNode, linkBytesPerSecond } = request;
  const { context, batch, dtype, attention, execution, recompute, logits } = setting;
  const network =
    gpus > perNode
      ? ` in nodes of ${perNode}, ${formatNumber(linkBytesPerSecond! / 1e9)} GB/s from each to other nodes`
      : '';
  const again = recompute === 'none' ? '' : `, recomputed: ${recompute}`;
  const tokens =
    batch < 1
      ? `${Math.round(batch * gpus)} × ${context} tokens for all`
      : `${batch} × ${context} tokens for each`;
  const chunks = logits === 'chunked' ? ', logits in chunks' : '';
  return (
    `${request.model.size} on ${gpus} × ${machine.name}${network}; ${tokens}, ${dtype}, ` +
    `${attention} attention, ${execution}${again}${chunks}.`
  );
}

/** Bytes of one rank by what they hold. */
export function memoryTable(plan: Plan): Table {
  return {
    ...{ kind: 'table', id: 'memory', title: 'Memory of one GPU' },
    caption:
      `Of ${formatBytes(plan.planner.machine.memoryBytes)}. Gradients that come while activations go count once in the peak, and so do logits, ` +
      'which are gone before keys and values go around a ring once more.',
    columns: [
      layoutColumn,
      bytes('weights', 'Weights', 'Float32 parameters.'),
      bytes('casts', 'Casts', 'Their copies in the dtype of the products.'),
      bytes('gradients', 'Gradients', 'In float32.'),
      bytes('moments', 'Moments', "AdamW's two, in float32."),
      bytes('activations', 'Activations', 'What forward keeps for backward.'),
      bytes('logits', 'Logits', 'In the dtype of the products and in float32.'),
      bytes('buffers', 'Buffers', 'What is gathered, waits to be reduced, or goes around a ring.'),
      bytes('peak', 'Peak', 'The most at once.'),
    ],
    rows: rowsOf(plan, ({ step: { memory } }) => ({ ...memory })),
  };
}

/** The calls of a step, by what they carry. */
export function trafficTable(plan: Plan): Table {
  return {
    ...{ kind: 'table', id: 'communication', title: 'Communication of a step' },
    columns: [
      layoutColumn,
      { key: 'what', label: 'Of', kind: 'text' },
      { key: 'op', label: 'Call', kind: 'text' },
      { key: 'phase', label: 'In', kind: 'text' },
      { key: 'among', label: 'Ranks', kind: 'number' },
      { key: 'calls', label: 'Calls', kind: 'number' },
      { key: 'sentBytes', label: 'Sent', kind: 'bytes', description: 'By each GPU in all calls.' },
      ms('timeMs', 'Time', 'Of all calls with nothing alongside.'),
    ],
    rows: possibleLayouts(plan).flatMap(({ layout, step: { traffic } }) =>
      traffic.map(({ what, op, phase, axis, calls, sentBytes, timeMs }) => ({
        ...{ layout: layout.name, what, op, phase, among: layout[axis], calls, sentBytes, timeMs },
      })),
    ),
  };
}

/** How far each layout is bound by computation. */
export function boundTable(plan: Plan): Table {
  const tokens = plan.setting.batch * plan.setting.context;
  return {
    ...{ kind: 'table', id: 'bound', title: 'How far computation is the bound' },
    caption:
      `A step is bound by computation while its communication takes no longer than forward and backward: here with ${formatNumber(tokens)} ` +
      `tokens for each GPU. GPUs are counted in powers of two, up to ${formatNumber(MOST_GPUS)}.`,
    columns: [
      layoutColumn,
      { key: 'inequality', label: 'Communication ≤ forward and backward', kind: 'text' },
      {
        key: 'leastTokens',
        label: 'Least tokens a GPU',
        kind: 'number',
        description: 'With which both take as long.',
      },
      {
        key: 'mostOfThisStep',
        label: 'GPUs of this step',
        kind: 'number',
        description: 'The most that its tokens keep bound by computation.',
      },
      {
        key: 'mostAtThisBatch',
        label: 'GPUs of this batch',
        kind: 'number',
        description: 'The most where each of them has as many tokens as here.',
      },
    ],
    rows: rowsOf(plan, ({ step, bound }) => ({ inequality: inequality(step), ...bound })),
  };
}

function inequality({ communicationMs, computation, isBoundByComputation }: PossibleLayout['step']): string {
  const passMs = computation.forwardMs + computation.backwardMs;
  return `${formatDuration(communicationMs)} ${isBoundByComputation ? '≤' : '>'} ${formatDuration(passMs)}`;
}

/** Predicted next to measured, for each measured step. */
export function measuredTable({ measured }: Plan): Table {
  const number = (key: string, label: string) => ({ key, label, kind: 'number' }) as const;
  return {
    ...{ kind: 'table', id: 'beside-measured', title: 'Predicted beside measured' },
    caption:
      'Each step as predicted by a plan that is fitted to the others only. Where no other step of its kind was measured, the plan ' +
      'takes its computation as measured: then only communication and memory are predicted.',
    columns: [
      { key: 'size', label: 'Size', kind: 'text', emphasis: 'strong' },
      number('context', 'Context'),
      ...(['dtype', 'attention', 'execution', 'optimizer'] as const).map(
        (key) => ({ key, label: key[0]!.toUpperCase() + key.slice(1), kind: 'text' }) as const,
      ),
      number('ranks', 'Ranks'),
      { key: 'reduction', label: 'Reduction', kind: 'text' },
      ms('measuredMs', 'Measured', 'The median step.'),
      ms('predictedMs', 'Predicted', 'The step of the plan.'),
      {
        key: 'ratio',
        label: 'Ratio',
        kind: 'ratio',
        digits: 3,
        emphasis: 'strong',
        description: 'Predicted over measured.',
      },
      bytes('measuredBytes', 'Peak, measured', 'Of the rank that holds most.'),
      bytes('predictedBytes', 'Peak, predicted', 'Of the plan.'),
      {
        key: 'bytesRatio',
        label: 'Ratio of peaks',
        kind: 'ratio',
        digits: 3,
        description: 'Predicted over measured.',
      },
      number('calibratedBy', 'Other steps'),
    ],
    rows: measured.map(({ measured: step, plan, calibratedBy }) => ({
      ...plainValues({}, step),
      ...{ measuredMs: step.stepMs, predictedMs: plan.stepMs, ratio: plan.stepMs / step.stepMs },
      ...{ measuredBytes: step.peakBytes, predictedBytes: plan.memory.peak },
      ...{ bytesRatio: plan.memory.peak / step.peakBytes, calibratedBy },
    })),
  };
}
