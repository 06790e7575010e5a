import { UsageError } from '../errors.ts';
import { fitLatencyBandwidth } from '../measuring/latency-bandwidth.ts';
import { summarize } from '../measuring/statistics.ts';
import type { Machine, MeasuredStep } from './machine.ts';
import { layerWidths, type StepSetting } from './setting.ts';
import { wholeStepWork, type StepWork, type WorkOfPhase } from './step-work.ts';

/** How steps of one kind were measured to lie above their floor. */
export interface Calibration {
  /** What a layer takes whatever its size: launches, and kernels that are too small. */
  readonly perLayerMs: number;
  /** Of all else, the time over the floor. */
  readonly overFloor: number;
  /** How many measured steps say so. */
  readonly steps: number;
}

/** What calibrations keep apart. */
type Kind = Pick<StepSetting, 'dtype' | 'attention' | 'execution'> & { readonly sharing?: number };

/**
 * Fits the times of measured steps by their floors, both for one layer, as those of collectives are fitted by their bytes.
 * Throws a UsageError where no step of this kind is among them.
 */
export function calibrate(
  machine: Machine,
  kind: Kind,
  steps: readonly MeasuredStep[] = machine.steps,
): Calibration {
  const { sharing = 1 } = kind;
  const alike = steps.filter((step) => isOf(step, kind) && step.sharing === sharing);
  const points = alike.flatMap((step) => {
    if (step.computationMs === null) return [];
    const { layers } = step.shape;
    return [{ bytes: floorOf(machine, step) / layers, timeMs: step.computationMs / layers }];
  });
  if (points.length === 0) throw new UsageError(missing(machine, kind));
  const fit = fitLatencyBandwidth(points);
  // One size alone says nothing of what does not grow with it.
  const overFloor = fit
    ? 1000 / fit.bytesPerSecond
    : summarize(points.map(({ bytes, timeMs }) => timeMs / bytes)).median;
  return { perLayerMs: fit?.latencyMs ?? 0, overFloor, steps: points.length };
}

function isOf(step: MeasuredStep, kind: Kind): boolean {
  return (['dtype', 'attention', 'execution'] as const).every((key) => step[key] === kind[key]);
}

function missing({ name, steps }: Machine, { dtype, attention, execution }: Kind): string {
  const kinds = new Set(steps.map((step) => `${step.execution}, ${step.attention}, ${step.dtype}`));
  return (
    `No step of ${name} was measured that is ${execution}, with ${attention} attention, in ${dtype}; there are: ` +
    `${[...kinds].join('; ')}. Take one of these by --execution, --attention and --dtype, or --records of your own.`
  );
}

/** The floor of a whole model's step on one device. */
function floorOf(machine: Machine, step: MeasuredStep): number {
  const { forward, backward, optimizer } = wholeStepWork({ ...step, recompute: 'none' });
  return [forward, backward, optimizer].reduce((sum, phase) => sum + workFloorMs(machine, phase, step), 0);
}

/** Products, attention and the moving of bytes follow one another, as kernels do. */
function workFloorMs(
  machine: Machine,
  work: WorkOfPhase,
  { shape, dtype }: Pick<StepSetting, 'shape' | 'dtype'>,
): number {
  const { matmulFlopsPerSecond, copyBytesPerSecond } = machine.ceilings;
  const peak = matmulFlopsPerSecond[dtype];
  if (peak === undefined)
    throw new UsageError(
      `What products reach in ${dtype} is not known of ${machine.name}; give it by --peak.`,
    );
  const attention = attentionCeiling(machine, layerWidths(shape).head, dtype);
  const seconds =
    work.flops / peak +
    work.attended / (attention?.forward ?? peak) +
    work.attendedBackward / (attention?.backward ?? peak) +
    work.bytes / copyBytesPerSecond;
  return 1000 * seconds;
}

/** That of the measured head dimension that is nearest, as ratios go. */
function attentionCeiling({ attention }: Machine, headDimension: number, dtype: StepSetting['dtype']) {
  const distance = (each: { readonly headDimension: number }) =>
    Math.abs(Math.log(each.headDimension / headDimension));
  return attention
    .filter((each) => each.dtype === dtype)
    .toSorted((a, b) => distance(a) - distance(b))
    .at(0);
}

/**
 * Milliseconds of one rank's phases without communication, and of attention in them; a layer's overhead is a third forward's, as its
 * kernels are.
 */
export function computationTimes(
  machine: Machine,
  setting: Pick<StepSetting, 'shape' | 'dtype'>,
  work: StepWork,
  { perLayerMs, overFloor }: Calibration,
) {
  const overheadMs = perLayerMs * setting.shape.layers;
  const time = (phase: WorkOfPhase) => overFloor * workFloorMs(machine, phase, setting);
  return {
    forwardMs: overheadMs / 3 + time(work.forward),
    backwardMs: (2 * overheadMs) / 3 + time(work.backward),
    optimizerMs: time(work.optimizer),
    attentionMs: { forward: time(work.attention.forward), backward: time(work.attention.backward) },
  };
}
