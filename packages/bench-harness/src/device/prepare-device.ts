import type { BenchmarkDType, Ceilings } from '../measuring/ceilings.ts';
import { ceilingsSchema } from '../measuring/ceilings.ts';
import { UsageError } from '../errors.ts';
import { describeEnvironment, type DeviceDescription, type Environment } from '../records/environment.ts';
import { runCellProcess } from '../runner/cell-process.ts';
import { cacheCeilings, readCachedCeilings } from './ceilings-cache.ts';
import { remedies } from './diagnosis.ts';
import { probeResult, type ProbeResult } from './probe-schema.ts';

export interface PrepareOptions {
  readonly signal?: AbortSignal;
  readonly onStatus?: (text: string) => void;
  /** Measures the ceilings even when they are cached. */
  readonly freshCeilings?: boolean;
}

/** A device as found, and its roof; null where none was asked for. */
export interface PreparedDevice {
  readonly environment: Environment;
  readonly ceilings: Ceilings | null;
}

/**
 * Finds the device and its ceilings for `dtypes`, cached or measured now; none for no dtypes. Throws UsageError, with what is missing and how to
 * get it, when the device cannot be used. Null when interrupted.
 */
export async function prepareDevice(
  spec: string,
  dtypes: readonly BenchmarkDType[],
  options: PrepareOptions = {},
): Promise<PreparedDevice | null> {
  options.onStatus?.(`Opening the device ${spec}`);
  const device = await openDevice(spec, options.signal);
  if (device === null) return null;
  const environment = describeEnvironment(device);
  if (dtypes.length === 0) return { environment, ceilings: null };
  const ceilings = await findCeilings(environment, dtypes, options);
  return ceilings && { environment, ceilings };
}

/** The device that `spec` means. Throws UsageError as `prepareDevice` does; null when interrupted. */
export async function openDevice(spec: string, signal?: AbortSignal): Promise<DeviceDescription | null> {
  const probe = await probeDevice(spec, signal);
  if (probe === null) return null;
  if (probe.device !== null) return probe.device;
  throw new UsageError([probe.problem, ...remedies(probe.diagnosis)].join('\n  '));
}

/** Looks without judging. Null when interrupted. */
export async function probeDevice(spec: string, signal?: AbortSignal): Promise<ProbeResult | null> {
  const outcome = await runCellProcess(
    { task: 'probe-device', parameters: { device: spec }, settings: {}, deviceLabel: spec },
    signal ? { signal } : {},
  );
  if (outcome.status === 'interrupted') return null;
  if (outcome.status !== 'ok') throw new UsageError(`Cannot open ${spec}: ${outcome.error.message}`);
  return probeResult.parse(outcome.result);
}

async function findCeilings(
  environment: Environment,
  dtypes: readonly BenchmarkDType[],
  { signal, onStatus, freshCeilings = false }: PrepareOptions,
): Promise<Ceilings | null> {
  const cached = freshCeilings ? null : readCachedCeilings(environment);
  const missing = dtypes.filter((dtype) => cached?.matmulFlopsPerSecond[dtype] === undefined);
  if (cached && missing.length === 0) return cached;

  onStatus?.(`Measuring the ceilings of ${environment.device.name}, once`);
  const outcome = await runCellProcess(
    {
      task: 'measure-ceilings',
      parameters: { dtypes: missing },
      settings: {},
      deviceLabel: environment.device.label,
    },
    signal ? { signal } : {},
  );
  if (outcome.status === 'interrupted') return null;
  if (outcome.status !== 'ok') {
    throw new Error(
      `The ceilings of ${environment.device.name} cannot be measured: ${outcome.error.message}`,
    );
  }
  const measured = ceilingsSchema.parse(outcome.result);
  const ceilings: Ceilings = {
    matmulFlopsPerSecond: { ...cached?.matmulFlopsPerSecond, ...measured.matmulFlopsPerSecond },
    copyBytesPerSecond: Math.max(cached?.copyBytesPerSecond ?? 0, measured.copyBytesPerSecond),
  };
  cacheCeilings(environment, ceilings);
  return ceilings;
}
