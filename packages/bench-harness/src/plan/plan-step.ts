import { factsOf } from '../benchmarks/allreduce/operations.ts';
import { computationTimes, type Calibration } from './computation.ts';
import { ranksOf, type Layout } from './layout.ts';
import { collectiveMs, spanOf, type Links } from './links.ts';
import { interferenceOf, type Machine } from './machine.ts';
import { memoryOf } from './memory.ts';
import { parameterUnits, type StepSetting, tensorsOf, withCopies } from './setting.ts';
import { stepWork, wholeStepWork } from './step-work.ts';
import { trafficOf, type Reduction, type Traffic } from './traffic.ts';

/** What a plan is made with. */
export interface Planner {
  readonly machine: Machine;
  readonly links: Links;
  readonly calibration: Calibration;
  /** See `interferenceOf`. */
  readonly interference: number;
}

export function plannerOf(machine: Machine, links: Links, calibration: Calibration): Planner {
  return { machine, links, calibration, interference: interferenceOf(machine.steps) };
}

/** Calls of one kind, and what they take. */
export interface TimedTraffic extends Traffic {
  /** Of all calls, with nothing alongside. */
  readonly timeMs: number;
  /** What a rank sends in all of them. */
  readonly sentBytes: number;
}

/** A step of one layout, as it is expected. */
export interface StepPlan {
  readonly layout: Layout;
  readonly computation: ReturnType<typeof computationTimes>;
  readonly computationMs: number;
  readonly traffic: readonly TimedTraffic[];
  readonly communicationMs: number;
  /** What communication adds to the step. */
  readonly exposedMs: number;
  readonly stepMs: number;
  readonly sentBytes: number;
  /** Products without those made again, over what the ceiling would allow in the step's time. */
  readonly utilization: number;
  readonly memory: ReturnType<typeof memoryOf>;
  readonly fits: boolean;
  /** Whether communication takes less time than forward and backward. */
  readonly isBoundByComputation: boolean;
}

/** The step of a layout. `reduction` is how replicas reduce gradients, if not in buckets during backward. */
export function planStep(
  planner: Planner,
  layout: Layout,
  setting: StepSetting,
  reduction?: Reduction,
): StepPlan {
  const { machine, calibration } = planner;
  const ofRanks = withCopies(setting, layout.tensor);
  const held = parameterUnits(ofRanks).total / (layout.tensor * layout.shard);
  const updated = held / (layout.shardsMoments ? layout.replicate : 1);
  const work = stepWork(ofRanks, { cast: held, updated, contextRanks: layout.context });
  const computation = computationTimes(machine, ofRanks, work, calibration);
  const { forwardMs, backwardMs, optimizerMs } = computation;
  const computationMs = forwardMs + backwardMs + optimizerMs;
  const traffic = trafficOf(layout, setting, reduction).map((each) => timed(each, layout, planner.links));
  const communicationMs = sum(traffic, 'timeMs');
  const { attentionMs } = computation;
  // Forward, keys travel during all parts of attention but the last; backward, their gradients travel during the last one, too.
  const besideRing = {
    forward: attentionMs.forward * (1 - 1 / layout.context),
    backward: attentionMs.backward,
  };
  const exposedMs =
    exposed(traffic, 'forward', forwardMs, planner.interference, besideRing.forward) +
    exposed(traffic, 'backward', backwardMs, planner.interference, besideRing.backward) +
    exposed(traffic, 'optimizer', 0, planner.interference);
  const stepMs = computationMs + exposedMs;
  const memory = memoryOf(
    layout,
    setting,
    // Gradients that are reduced one by one have no buckets that stay.
    reduction && ranksOf(layout) > 1 && reduction.calls < tensorsOf(setting),
  );
  const peakFlops = machine.ceilings.matmulFlopsPerSecond[setting.dtype]!;
  return {
    ...{ layout, computation, computationMs, traffic, communicationMs, exposedMs, stepMs },
    ...{ sentBytes: sum(traffic, 'sentBytes'), memory, fits: memory.peak <= machine.memoryBytes },
    utilization: wholeStepWork(setting).modelFlops / ((stepMs / 1000) * peakFlops),
    isBoundByComputation: communicationMs <= forwardMs + backwardMs,
  };
}

function timed(traffic: Traffic, layout: Layout, links: Links): TimedTraffic {
  const { op, bytes, calls, axis } = traffic;
  const span = spanOf(layout, axis, links);
  return {
    ...traffic,
    timeMs: calls * collectiveMs(op, bytes, span, links),
    sentBytes: calls * bytes * factsOf[op].busFactor(span.ranks),
  };
}

/**
 * What the communication of a phase adds to its computation: all that cannot hide, what a ring takes longer than `besideRingMs` of
 * attention, the first of the calls that can hide, of the others what they slow computation by, or what is left of them when it has ended.
 */
function exposed(
  all: readonly TimedTraffic[],
  phase: Traffic['phase'],
  computationMs: number,
  interference: number,
  besideRingMs = 0,
): number {
  const traffic = all.filter((each) => each.phase === phase);
  const open = sum(
    traffic.filter(({ hides }) => !hides),
    'timeMs',
  );
  const hiding = traffic.filter(({ hides }) => hides);
  const isOfRing = ({ op }: Traffic) => op === 'sendrecv';
  const leftOfRingMs = Math.max(0, sum(hiding.filter(isOfRing), 'timeMs') - besideRingMs);
  const hidingMs = sum(hiding, 'timeMs') - leftOfRingMs;
  const others = hiding.filter((each) => !isOfRing(each));
  const firstMs = Math.max(0, ...others.map(({ timeMs, calls }) => timeMs / calls));
  return (
    open + leftOfRingMs + Math.max(firstMs + interference * (hidingMs - firstMs), hidingMs - computationMs)
  );
}

function sum<Key extends string>(items: readonly Readonly<Record<Key, number>>[], key: Key): number {
  return items.reduce((total, item) => total + item[key], 0);
}
