import { DeviceError, checkFunction, checkObject, wrongArgument } from '@roofline/cuda/host';
import type { CudaDevice } from '../../backends/cuda/device.ts';
import { openedCudaDevices } from '../../backends/cuda/open-device.ts';
import { type Cupti, type RecordedActivities, loadCupti } from '@roofline/cuda/parts';
import type { DType } from '../../base/dtype.ts';
import { bytesOf, costOf } from '../../op/cost.ts';
import type { Cost } from '../../op/op.ts';
import { cpuKernels, gpuKernels } from './kernels.ts';
import type { OpenRange } from '../../tensor/ranges/range.ts';
import type { ProfiledKernel, ProfiledOp, ProfiledRange } from './profiled.ts';
import { type OpCall, OpRecorder } from './op-recorder.ts';

/** What `profile` recorded. */
export interface Profile {
  /** In the order of their start. */
  readonly kernels: readonly ProfiledKernel[];
  readonly ops: readonly ProfiledOp[];
  readonly ranges: readonly ProfiledRange[];
  /** From idle devices until devices are idle again, by the host's clock. */
  readonly wallUs: number;
  /** How many records are missing because CUPTI's buffers had no room. */
  readonly droppedRecords: number;
}

const nothingRecorded: RecordedActivities = { activities: [], queuedAtMs: new Map(), droppedRecords: 0 };

/**
 * Runs `fn` and reports what ran on which device, for which op, in which range. Open GPUs are recorded by CUPTI; on the CPU
 * each op is timed, and its time divided among the nodes of its ONNX graph as ONNX Runtime times them. CUDA allows one
 * profiler at a time, so this does not work inside Nsight. CUPTI stays attached to the process and makes each launch cost the
 * host more from then on, so measure before you profile.
 *
 * On a GPU a compiled function is profiled as it runs: each kernel of its graph with its op and its ranges, a fused one with
 * the ops that it replaces. On the CPU its ops run one by one while profiling, unfused.
 *
 * Throws a LibraryNotFoundError without CUPTI when a GPU is open, a DeviceError when another profile is under way.
 */
export function profile(fn: () => void | Promise<void>): Promise<Profile> {
  checkFunction('profile', 'what it runs', fn);
  return profileDevices(openedCudaDevices(), fn);
}

/** Stays set until the records have been collected: a profile that started before would end the recording of this one. */
let isUnderWay = false;

/** The same for the given GPUs. */
export async function profileDevices(
  devices: readonly CudaDevice[],
  fn: () => void | Promise<void>,
): Promise<Profile> {
  if (isUnderWay) {
    throw new DeviceError(
      'profile: ops are being recorded already; end the profile that is under way before another begins.',
    );
  }
  isUnderWay = true;
  try {
    return describeProfile(await recordProfile(devices, fn));
  } finally {
    isUnderWay = false;
  }
}

interface Recording {
  readonly calls: readonly OpCall[];
  readonly recorded: RecordedActivities;
  readonly startMs: number;
  readonly endMs: number;
}

async function recordProfile(
  devices: readonly CudaDevice[],
  fn: () => void | Promise<void>,
): Promise<Recording> {
  const cupti = devices.length > 0 ? loadCupti() : null;
  const recorder = new OpRecorder();
  const synchronize = () => devices.forEach((device) => device.synchronize());
  synchronize();
  cupti?.start();
  recorder.start();
  const startMs = performance.now();
  let endMs = 0;
  try {
    await fn();
    synchronize();
    endMs = performance.now();
  } catch (error) {
    recorder.stop();
    if (cupti) await abandon(cupti, synchronize);
    throw error;
  }
  recorder.stop();
  const recorded = cupti ? await cupti.stop() : nothingRecorded;
  return { calls: recorder.calls(), recorded, startMs, endMs };
}

/** Ends a recording that failed. If the device has failed as well, the error that is thrown says all there is. */
async function abandon(cupti: Cupti, synchronize: () => void): Promise<void> {
  try {
    // What is still queued would end up in the next profile's records.
    synchronize();
  } catch {}
  try {
    await cupti.stop();
  } catch {}
}

function describeProfile({ calls, recorded, startMs, endMs }: Recording): Profile {
  const ranges = new RangeTable();
  return {
    kernels: [...cpuKernels(calls, startMs), ...gpuKernels(recorded, calls)].sort(
      (a, b) => a.startUs - b.startUs,
    ),
    ops: calls.map((call) => describeOp(call, ranges.indexOf(call.range), startMs)),
    ranges: ranges.ranges,
    wallUs: (endMs - startMs) * 1000,
    droppedRecords: recorded.droppedRecords,
  };
}

/** Numbers ranges, outer ones before inner ones. */
class RangeTable {
  readonly ranges: ProfiledRange[] = [];
  readonly #indices = new Map<OpenRange, number>();

  indexOf(range: OpenRange | null): number | null {
    if (range === null) return null;
    const known = this.#indices.get(range);
    if (known !== undefined) return known;
    const parent = this.indexOf(range.outer);
    const index = this.ranges.push({ name: range.name, parent }) - 1;
    this.#indices.set(range, index);
    return index;
  }
}

function describeOp(call: OpCall, range: number | null, profileStartMs: number): ProfiledOp {
  const { op, members, startMs, endMs } = call;
  const cost = costOfCall(call);
  return {
    name: op.name,
    members: members.map((member) => member.op.name),
    isMatrixProduct: cost.boundBy === 'tensorCores',
    dtype: operandDType(call),
    cost,
    range,
    allocatedBytes: call.allocatedBytes,
    hostStartUs: (startMs - profileStartMs) * 1000,
    hostDurationUs: (endMs - startMs) * 1000,
  };
}

/** A fused op's is that of its product: an optimizer that updates float32 by a product of bfloat16 multiplies bfloat16. */
function operandDType({ inputs, outputs, members }: OpCall): DType {
  const product = members.find(
    (member) =>
      costOf(member.op, member.inputs, member.outputs, member.attributes as never).boundBy === 'tensorCores',
  );
  return (product?.inputs[0] ?? inputs[0] ?? outputs[0]!).dtype;
}

/** Fused ops calculate what they would separately, but move only what none passes to the next. */
function costOfCall({ op, inputs, outputs, attributes, members }: OpCall): Cost {
  if (members.length === 0) return costOf(op, inputs, outputs, attributes as never);
  const costs = members.map((member) =>
    costOf(member.op, member.inputs, member.outputs, member.attributes as never),
  );
  return {
    flops: costs.reduce((sum, { flops }) => sum + flops, 0),
    bytesMoved: bytesOf(inputs) + bytesOf(outputs),
    boundBy: costs.some(({ boundBy }) => boundBy === 'tensorCores') ? 'tensorCores' : 'memory',
  };
}

/** The names of a range and those around it, outermost first. */
export function rangePath(profile: Pick<Profile, 'ranges'>, range: number | null): string[] {
  checkObject('rangePath', 'the profile', profile);
  const { ranges } = profile;
  if (!Array.isArray(ranges)) throw wrongArgument('rangePath', 'the profile', 'what profile() gave', profile);
  if (range !== null && ranges[range] === undefined) {
    throw wrongArgument('rangePath', 'the range', "null or the index of one of the profile's", range);
  }
  const path: string[] = [];
  for (let index = range; index !== null; index = ranges[index]!.parent) path.unshift(ranges[index]!.name);
  return path;
}
