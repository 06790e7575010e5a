import { checkText } from '../base/check-value.ts';
import { DeviceError } from '../base/errors.ts';
import { type NativeFunctions, declareFunctions } from '../base/host/ffi.ts';
import { HostMemory } from '../base/host/host-memory.ts';
import { libraries, loadLibrary } from './library-search.ts';

const clockLimits = ['power', 'thermal', 'hardware'] as const;

/** What holds the clocks of a GPU below what they could be: a limit of power, heat, or the board's hardware. */
export type ClockLimit = (typeof clockLimits)[number];

/** What NVML says of a GPU's clocks. Null is what this GPU, its driver or its machine does not say. */
export interface ClockReading {
  /** What limits them now. */
  readonly limits: readonly ClockLimit[] | null;
  /** For how many nanoseconds a limit of power, and heat, have held them down since the driver was loaded. */
  readonly powerNs: number | null;
  readonly thermalNs: number | null;
}

const prototypes = {
  nvmlInit: 'int nvmlInit_v2()',
  nvmlDeviceGetHandleByPciBusId:
    'int nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, uintptr_t device)',
  nvmlDeviceGetCurrentClocksEventReasons:
    'int nvmlDeviceGetCurrentClocksEventReasons(uintptr_t device, uintptr_t reasons)',
  // Its name up to driver 530.
  nvmlDeviceGetCurrentClocksThrottleReasons:
    'int nvmlDeviceGetCurrentClocksThrottleReasons(uintptr_t device, uintptr_t reasons)',
  nvmlDeviceGetViolationStatus:
    'int nvmlDeviceGetViolationStatus(uintptr_t device, int policy, uintptr_t times)',
  nvmlDeviceGetP2PStatus:
    'int nvmlDeviceGetP2PStatus(uintptr_t device, uintptr_t other, int capability, uintptr_t status)',
} as const;

// NVML_SUCCESS, from nvml.h.
const success = 0;

// NVML_P2P_CAPS_INDEX_NVLINK and NVML_P2P_STATUS_OK.
const nvlink = 2;
const isConnected = 0;

// nvmlPerfPolicyType_t
const policies = { power: 0, thermal: 1 } as const;

// nvmlClocksEventReason*; others, as an idle GPU or clocks that its user chose, are no limits.
const reasonBits = {
  swPowerCap: 0x4,
  hwSlowdown: 0x8,
  swThermalSlowdown: 0x20,
  hwThermalSlowdown: 0x40,
  hwPowerBrakeSlowdown: 0x80,
} as const;

/** The clocks of one GPU, by NVML. */
export interface GpuClocks {
  /** Never throws: of a GPU that has gone there is nothing to say. */
  read(): ClockReading;
}

/**
 * `pciBusId` is that of a device's properties: its index counts what CUDA_VISIBLE_DEVICES leaves. Throws a
 * LibraryNotFoundError without NVML, and a DeviceError where that does not start or does not know the GPU.
 */
export function gpuClocks(pciBusId: string): GpuClocks {
  checkText('gpuClocks', 'the PCI bus id', pciBusId);
  const functions = loadNvml();
  const device = deviceOf(functions, pciBusId);
  const memory = new HostMemory(16);
  const { address } = memory;
  const limits = () => {
    const isAnswered =
      succeeds(() => functions.nvmlDeviceGetCurrentClocksEventReasons(device, address)) ||
      succeeds(() => functions.nvmlDeviceGetCurrentClocksThrottleReasons(device, address));
    return isAnswered ? limitsOf(memory.words[0]!) : null;
  };
  const heldNs = (policy: keyof typeof policies) => {
    const call = () => functions.nvmlDeviceGetViolationStatus(device, policies[policy], address);
    // nvmlViolationTime_t: the time of the reading, then that of all violations.
    return succeeds(call) ? memory.readUint64(8) : null;
  };
  return { read: () => ({ limits: limits(), powerNs: heldNs('power'), thermalNs: heldNs('thermal') }) };
}

/**
 * Whether two GPUs of this machine, which CUDA_VISIBLE_DEVICES may hide, are one or are connected by NVLink. Throws as
 * `gpuClocks` does.
 */
export function haveNvlink(pciBusId: string, otherPciBusId: string): boolean {
  if (pciBusId === otherPciBusId) return true;
  const functions = loadNvml();
  const [device, other] = [deviceOf(functions, pciBusId), deviceOf(functions, otherPciBusId)];
  const { address, words } = new HostMemory(16);
  const isAnswered = succeeds(() => functions.nvmlDeviceGetP2PStatus(device, other, nvlink, address));
  return isAnswered && words[0] === isConnected;
}

function deviceOf(functions: Nvml, pciBusId: string): number {
  const memory = new HostMemory(16);
  const result = functions.nvmlDeviceGetHandleByPciBusId(pciBusId, memory.address);
  if (result === success) return memory.readUint64(0);
  throw new DeviceError(
    `NVML gives no access to the GPU ${pciBusId} (nvmlReturn ${result}): does \`nvidia-smi\` list it?`,
  );
}

/** Whether NVML, the driver and the GPU have what is asked for. */
function succeeds(call: () => number): boolean {
  try {
    return call() === success;
  } catch (error) {
    if (error instanceof MissingFunctionError) return false;
    throw error;
  }
}

function limitsOf(reasons: number): ClockLimit[] {
  const has = (bits: number) => (reasons & bits) !== 0;
  const isThermal = has(reasonBits.swThermalSlowdown | reasonBits.hwThermalSlowdown);
  // Of heat too hwSlowdown is reported; alone it is another fault of the board or its supply.
  const isHardware = has(reasonBits.hwPowerBrakeSlowdown) || (has(reasonBits.hwSlowdown) && !isThermal);
  const found = { power: has(reasonBits.swPowerCap), thermal: isThermal, hardware: isHardware };
  return clockLimits.filter((limit) => found[limit]);
}

class MissingFunctionError extends DeviceError {}

type Nvml = NativeFunctions<typeof prototypes>;

let nvml: Nvml | null = null;

/** NVML, started once. */
function loadNvml(): Nvml {
  if (nvml) return nvml;
  const { handle, path } = loadLibrary(libraries.nvml);
  const functions = declareFunctions(
    handle,
    prototypes,
    (name) => new MissingFunctionError(`${path} has no ${name}: update NVIDIA's driver.`),
  );
  const result = functions.nvmlInit();
  if (result !== success)
    throw new DeviceError(`${path} does not start (nvmlReturn ${result}): does \`nvidia-smi\` run?`);
  nvml = functions;
  return nvml;
}
