import { architectureOf } from './architecture.ts';
import type { CudaDriver } from './driver/driver.ts';
import { EventPool } from './driver/event.ts';
import { Streams } from './driver/stream.ts';
import { Launcher } from './launch/launch.ts';
import { TensorMapEncoder } from './launch/tensor-map.ts';
import { DeviceMemory } from './memory/device-memory.ts';
import { type Scratch, StreamScratch } from './memory/stream-scratch.ts';
import { commonBuilder } from './nvrtc/common-builder.ts';
import type { KernelBuilder } from './nvrtc/compile.ts';
import { KernelModules } from './nvrtc/modules.ts';
import { type DeviceFacts, readFacts } from './properties.ts';

/** What a GPU gets from outside, so that tests can stand in for it. */
export interface GpuStandIns {
  makeBuilder(architecture: string): KernelBuilder;
  /** Whether freed memory is filled with 0xff, NaN in every floating-point type; ROOFLINE_POISON_MEMORY=1. */
  readonly poisonsFreedMemory: boolean;
}

/** What a GPU is made of. The objects that stand for one GPU share these: it has one allocator and one current stream. */
export interface GpuParts {
  readonly driver: CudaDriver;
  readonly index: number;
  /** Such as `cuda:0`. */
  readonly label: string;
  readonly facts: DeviceFacts;
  readonly streams: Streams;
  readonly memory: DeviceMemory;
  readonly scratch: Scratch;
  readonly launcher: Launcher;
  readonly builder: KernelBuilder;
  readonly modules: KernelModules;
  readonly tensorMaps: TensorMapEncoder;
  /** Directs this thread's driver calls to this GPU. */
  makeCurrent(): void;
}

/** The context that this thread's driver calls go to. */
let currentContext = 0;

/** The parts of the driver's GPU of that index. Throws a DeviceError for one that is too old. */
export function makeGpuParts(
  driver: CudaDriver,
  index: number,
  { makeBuilder, poisonsFreedMemory }: GpuStandIns = nvidiaParts(),
): GpuParts {
  const { functions } = driver;
  const handle = driver.intFrom('cuDeviceGet', (out) => functions.cuDeviceGet(out, index));
  const facts = readFacts(driver, handle);
  const builder = makeBuilder(architectureOf(facts.computeCapability));
  const context = driver.handleFrom('cuDevicePrimaryCtxRetain', (out) =>
    functions.cuDevicePrimaryCtxRetain(out, handle),
  );
  const makeCurrent = () => {
    if (currentContext === context) return;
    driver.check(functions.cuCtxSetCurrent(context), 'cuCtxSetCurrent');
    currentContext = context;
  };
  const label = `cuda:${index}`;
  const common = { driver, events: new EventPool(driver), makeCurrent };
  const streams = new Streams(common);
  const memory = new DeviceMemory({ ...common, streams, label, poisonsFreedMemory });
  const kept = new StreamScratch(streams, (byteLength) => memory.allocatePermanent(byteLength));
  const launcher = new Launcher(driver, streams, makeCurrent);
  return {
    ...{ driver, index, label, facts, streams, memory, launcher, builder, makeCurrent },
    scratch: (name, byteLength) => kept.take(name, byteLength),
    modules: new KernelModules(driver, builder, launcher),
    tensorMaps: new TensorMapEncoder(driver),
  };
}

/** Those of a real GPU. */
function nvidiaParts(): GpuStandIns {
  return { makeBuilder: commonBuilder, poisonsFreedMemory: process.env.ROOFLINE_POISON_MEMORY === '1' };
}
