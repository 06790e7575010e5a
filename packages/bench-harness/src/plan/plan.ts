import { UsageError } from '../errors.ts';
import type { NamedModel } from '../model/shape.ts';
import { besideMeasured, type PredictedStep } from './beside-measured.ts';
import { leastTokens, mostGpus } from './bound.ts';
import { calibrate } from './computation.ts';
import { type Layout, batchObstacle, layoutsOf, obstacleOf, ranksOf } from './layout.ts';
import type { Links } from './links.ts';
import { linkFits, type Machine } from './machine.ts';
import { plannerOf, planStep, type Planner, type StepPlan } from './plan-step.ts';
import type { StepSetting } from './setting.ts';

/** What is asked of a plan. */
export interface PlanRequest extends Omit<StepSetting, 'shape'> {
  readonly model: NamedModel;
  readonly gpus: number;
  /** Devices of a node; the others are reached by `linkBytesPerSecond` of each. */
  readonly perNode: number;
  readonly linkBytesPerSecond: number | null;
  /** In place of what was measured of the devices. */
  readonly given?: GivenDevice;
}

/** FLOP/s of products, bytes that a copy reads and writes in a second, and bytes of memory. */
export interface GivenDevice {
  readonly peak?: number | undefined;
  readonly copy?: number | undefined;
  readonly memory?: number | undefined;
}

/** A layout, with its step or why there is none. */
export type PlannedLayout =
  | { readonly layout: Layout; readonly obstacle: string }
  | {
      readonly layout: Layout;
      readonly obstacle: null;
      readonly step: StepPlan;
      readonly bound: ReturnType<typeof boundOf>;
    };
export type PossibleLayout = Extract<PlannedLayout, { obstacle: null }>;

export interface Plan {
  readonly request: PlanRequest;
  readonly setting: StepSetting;
  readonly planner: Planner;
  /** The best first: those that fit in memory by their time, then the others by their bytes, then those that cannot be. */
  readonly layouts: readonly PlannedLayout[];
  readonly measured: readonly PredictedStep[];
}

/**
 * Plans a training step for every layout. Throws a UsageError for links that are not known, and where no step of this
 * kind was measured.
 */
export function planOf(machine: Machine, request: PlanRequest): Plan {
  const { model, gpus, perNode, ...rest } = request;
  const setting: StepSetting = { ...rest, shape: model.shape };
  // How far steps lie above their floor was measured under the measured ceilings.
  const calibration = calibrate(machine, setting);
  const planner = plannerOf(withGiven(machine, request), linksOf(machine, request), calibration);
  const planned = layoutsOf(gpus, perNode).map((layout): PlannedLayout => {
    const obstacle = obstacleOf(layout, setting) ?? batchObstacle(layout, setting);
    if (obstacle !== null) return { layout, obstacle };
    return {
      layout,
      obstacle,
      step: planStep(planner, layout, setting),
      bound: boundOf(planner, layout, setting),
    };
  });
  return { request, setting, planner, layouts: bestFirst(planned), measured: besideMeasured(machine) };
}

export function possibleLayouts({ layouts }: Plan): PossibleLayout[] {
  return layouts.filter((each) => each.obstacle === null);
}

/** Why some layouts cannot be: a sentence each. */
export function obstacles({ layouts }: Plan): string[] {
  return layouts.flatMap(({ layout, obstacle }) =>
    obstacle === null ? [] : [`${layout.name} of ${ranksOf(layout)} cannot be: ${obstacle}.`],
  );
}

function withGiven(machine: Machine, { given = {}, dtype }: PlanRequest): Machine {
  const { peak, copy, memory } = given;
  if ([peak, copy, memory].every((value) => value === undefined)) return machine;
  const { matmulFlopsPerSecond, copyBytesPerSecond } = machine.ceilings;
  return {
    ...machine,
    name: `${machine.name}, as given`,
    memoryBytes: memory ?? machine.memoryBytes,
    ceilings: {
      matmulFlopsPerSecond: { ...matmulFlopsPerSecond, ...(peak !== undefined && { [dtype]: peak }) },
      copyBytesPerSecond: copy ?? copyBytesPerSecond,
    },
  };
}

function linksOf(machine: Machine, { gpus, perNode, linkBytesPerSecond }: PlanRequest): Links {
  const inside = linkFits(machine);
  if (gpus > perNode && linkBytesPerSecond === null)
    throw new UsageError(
      `${gpus} GPUs in nodes of ${perNode} are connected by a network: say what each of them sends there by --link, as 50GB/s.`,
    );
  if (inside.length === 0 && perNode > 1 && gpus > 1)
    throw new UsageError(
      `No collectives of ${machine.name} were measured: add a folder of \`roofline allreduce\` to --records, or have one ` +
        'GPU in a node by --nodes-of 1, with --link.',
    );
  return { inside, perNode, outsideBytesPerSecond: linkBytesPerSecond };
}

/** How far a layout stays bound by computation. */
function boundOf(planner: Planner, layout: Layout, setting: StepSetting) {
  return {
    /** The fewest tokens for each device; null where their number does not decide. */
    leastTokens: leastTokens(planner, layout, setting),
    // The most devices, of powers of two up to 16,384: of this step, and with as many sequences for each. Null for none.
    mostOfThisStep: mostGpus(planner, layout, setting, 'batch of all'),
    mostAtThisBatch: mostGpus(planner, layout, setting, 'batch of each'),
  };
}

/** Of the layouts that shard and are tensor parallel too, only the best, and so of those that divide sequences. */
function bestFirst(planned: readonly PlannedLayout[]): PlannedLayout[] {
  const sorted = planned.toSorted((a, b) => {
    if (a.obstacle !== null || b.obstacle !== null)
      return Number(a.obstacle !== null) - Number(b.obstacle !== null);
    if (a.step.fits !== b.step.fits) return Number(b.step.fits) - Number(a.step.fits);
    return a.step.fits ? a.step.stepMs - b.step.stepMs : a.step.memory.peak - b.step.memory.peak;
  });
  const isJoint = ({ layout: { shard, tensor } }: PlannedLayout) => shard > 1 && tensor > 1;
  const isRing = ({ layout: { context } }: PlannedLayout) => context > 1;
  return [isJoint, isRing].reduce((left, isOfKind) => {
    const best = left.find(isOfKind);
    return left.filter((each) => !isOfKind(each) || each === best);
  }, sorted);
}
