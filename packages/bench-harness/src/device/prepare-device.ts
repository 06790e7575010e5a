import { z } from 'zod';
import { checkArgument, anyFunction } from '../check-argument.ts';
import {
  dtypes as benchmarkDTypes,
  type BenchmarkDType,
  type Ceilings,
  ceilingsSchema,
} from '../measuring/ceilings.ts';
import { UsageError } from '../errors.ts';
import { describeEnvironment, type DeviceDescription, type Environment } from '../records/environment.ts';
import { runCellProcess } from '../runner/cell-process.ts';
import { cacheCeilings, readCachedCeilings } from './ceilings-cache.ts';
import { describeDevice } from './describe-device.ts';
import { neededBy, remedies, probeResult, type ProbeResult } from './diagnosis.ts';

/** A driver that hangs would hold the sweep for ever. */
const OPEN_TIMEOUT_MS = 120_000;
const CEILINGS_TIMEOUT_MS = 600_000;

export interface ExecutableOptions {
  readonly signal?: AbortSignal;
  /** For opening the device, and for its ceilings. Default: 2 minutes and 10 minutes. */
  readonly timeoutMs?: number;
  /** Called with what goes on, and how much of it is done. */
  readonly onStatus?: (text: string, done?: number, total?: number) => void;
  /** Measures the ceilings even when they are cached. */
  readonly freshCeilings?: boolean;
}

const prepareOptions = z.strictObject({
  signal: z.instanceof(AbortSignal).optional(),
  timeoutMs: z.number().positive().optional(),
  onStatus: anyFunction.optional(),
  freshCeilings: z.boolean().optional(),
});

/** A device as found, and its roof; null where none was asked for. */
export interface PreparedDevice {
  readonly environment: Environment;
  readonly ceilings: Ceilings | null;
}

/**
 * Finds the device and its ceilings, cached or measured now: that of copies, and those of products of `dtypes`, which may
 * be none for work that only moves bytes; null for no ceilings at all. Throws UsageError, with what is missing and how to
 * get it, when the device cannot be used. Null when interrupted.
 */
export async function prepareDevice(
  spec: string,
  dtypes: readonly BenchmarkDType[] | null,
  options: ExecutableOptions = {},
): Promise<PreparedDevice | null> {
  checkArgument('prepareDevice', 'spec', spec, z.string());
  checkArgument('prepareDevice', 'dtypes', dtypes, z.array(z.enum(benchmarkDTypes)).nullable());
  checkArgument('prepareDevice', 'options', options, prepareOptions);
  options.onStatus?.(`Opening the device ${spec}`);
  const device = await openDevice(spec, options);
  if (device === null) return null;
  const environment = describeEnvironment(device);
  if (dtypes === null) return { environment, ceilings: null };
  const ceilings = await findCeilings(environment, dtypes, options);
  return ceilings && { environment, ceilings };
}

/** The device that `spec` means. Throws UsageError as `prepareDevice` does; null when interrupted. */
export async function openDevice(
  spec: string,
  options: ProbeOptions = {},
): Promise<DeviceDescription | null> {
  // It needs no process of its own, as a GPU does, whose driver may hang and whose memory this process must not hold.
  if (spec === 'cpu') return options.signal?.aborted ? null : describeDevice(spec);
  const probe = await probeDevice(spec, options);
  if (probe === null) return null;
  if (probe.device !== null) return probe.device;
  throw new UsageError([probe.problem, ...remedies(neededBy(spec, probe.diagnosis))].join('\n  '));
}

type ProbeOptions = Pick<ExecutableOptions, 'signal' | 'timeoutMs'>;

/** Looks without judging. Null when interrupted. Throws UsageError where the device does not answer. */
export async function probeDevice(
  spec: string,
  { signal, timeoutMs = OPEN_TIMEOUT_MS }: ProbeOptions = {},
): Promise<ProbeResult | null> {
  const outcome = await runCellProcess(
    { task: 'probe-device', parameters: { device: spec }, settings: {}, deviceLabel: spec },
    { timeoutMs, ...(signal ? { signal } : {}) },
  );
  if (outcome.status === 'interrupted') return null;
  if (outcome.status === 'timeout') {
    throw new UsageError(
      `${spec} did not open within ${timeoutMs / 1000} s. Does its driver hang (\`nvidia-smi\`)? --device chooses another.`,
    );
  }
  if (outcome.status !== 'ok') throw new UsageError(`Cannot open ${spec}: ${outcome.error.message}`);
  return probeResult.parse(outcome.result);
}

async function findCeilings(
  environment: Environment,
  dtypes: readonly BenchmarkDType[],
  { signal, onStatus, freshCeilings = false, timeoutMs = CEILINGS_TIMEOUT_MS }: ExecutableOptions,
): Promise<Ceilings | null> {
  const cached = freshCeilings ? null : readCachedCeilings(environment);
  const missing = dtypes.filter((dtype) => cached?.matmulFlopsPerSecond[dtype] === undefined);
  if (cached && missing.length === 0) return cached;

  const status = `Measuring the ceilings of ${environment.device.name}, once`;
  onStatus?.(status);
  const outcome = await runCellProcess(
    {
      task: 'measure-ceilings',
      parameters: { dtypes: missing },
      settings: {},
      deviceLabel: environment.device.label,
    },
    {
      timeoutMs,
      ...(signal ? { signal } : {}),
      onProgress: ({ done, total }) => onStatus?.(status, done, total),
    },
  );
  if (outcome.status === 'interrupted') return null;
  if (outcome.status === 'timeout') {
    throw new Error(
      `The ceilings of ${environment.device.name} were not measured within ${timeoutMs / 1000} s. ` +
        'Is the device in use by others?',
    );
  }
  if (outcome.status !== 'ok') {
    throw new Error(
      `The ceilings of ${environment.device.name} cannot be measured: ${outcome.error.message}`,
    );
  }
  const measured = ceilingsSchema.parse(outcome.result);
  const ceilings = cached ? higherOf(cached, measured) : measured;
  cacheCeilings(environment, ceilings);
  return ceilings;
}

/** New measurements replace those of products; the faster copy bandwidth wins; each keeps its spread. */
export function higherOf(cached: Ceilings, measured: Ceilings): Ceilings {
  const copy = cached.copyBytesPerSecond > measured.copyBytesPerSecond ? cached : measured;
  return {
    matmulFlopsPerSecond: { ...cached.matmulFlopsPerSecond, ...measured.matmulFlopsPerSecond },
    copyBytesPerSecond: copy.copyBytesPerSecond,
    spread: {
      matmulFlopsPerSecond: {
        ...cached.spread?.matmulFlopsPerSecond,
        ...measured.spread?.matmulFlopsPerSecond,
      },
      copyBytesPerSecond: copy.spread?.copyBytesPerSecond ?? 0,
    },
  };
}
