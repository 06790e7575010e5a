import type { Table } from '@roofline/reports';
import { z } from 'zod';
import { deviceDescription } from '../records/environment.ts';

/** What tensor-core says of one component that a device needs. */
export const diagnosisEntry = z.object({
  component: z.string(),
  status: z.enum(['found', 'missing', 'unusable']),
  detail: z.string(),
  path: z.string().optional(),
  version: z.string().optional(),
  remedy: z.string().optional(),
});
export type DiagnosisEntry = z.infer<typeof diagnosisEntry>;

export function diagnosisTable(entries: readonly DiagnosisEntry[]): Table {
  return {
    kind: 'table',
    id: 'doctor',
    title: 'What this machine offers',
    columns: [
      { key: 'component', label: 'Component', kind: 'text', emphasis: 'strong' },
      { key: 'found', label: 'Status', kind: 'text' },
      { key: 'version', label: 'Version', kind: 'text' },
      { key: 'detail', label: 'What it does', kind: 'text' },
      { key: 'path', label: 'Path', kind: 'text', overflow: 'shorten', detail: true },
    ],
    rows: entries.map(({ component, status, version, detail, path }) => ({
      component,
      found: status,
      version,
      detail,
      path,
    })),
  };
}

/**
 * How to get what is missing, a line each: commands and paths that people copy are no text for a column. What has the same
 * remedy shares a line.
 */
export function remedyLines(entries: readonly DiagnosisEntry[]): string[] {
  const lacking = entries.filter(({ status, remedy }) => status !== 'found' && remedy);
  return [...Map.groupBy(lacking, ({ remedy }) => remedy)].map(
    ([remedy, group]) => `${group.map(({ component }) => component).join(', ')}: ${remedy}`,
  );
}

/** What a GPU cannot do without. */
const GPU_NEEDS: readonly string[] = ['libcuda', 'libnvrtc', 'libcublasLt'];

/** What can be done here, in a sentence for each device: `The CPU is ready. No GPU: libcuda is missing.` */
export function verdict(entries: readonly DiagnosisEntry[]): string {
  const statusOf = (name: string) => entries.find(({ component }) => component === name)?.status;
  const withoutTorch = without(statusOf('Python with PyTorch') !== 'found', 'there is no `--peer torch`');
  if (statusOf('devices') === 'unusable')
    return ['Whether a device is ready is not known.', ...withoutTorch].join(' ');
  const cpu = statusOf('ONNX Runtime');
  const gpus = entries.filter(({ component, status }) => component.startsWith('cuda:') && status === 'found');
  const lacking = GPU_NEEDS.filter((name) => statusOf(name) !== 'found');
  const ready = gpus.map(({ component }) => component).join(', ');
  return [
    cpu === 'found' ? 'The CPU is ready.' : `The CPU is not ready: ONNX Runtime is ${cpu ?? 'missing'}.`,
    gpus.length > 0 && lacking.length === 0
      ? `${gpus.length === 1 ? 'The GPU is' : `${gpus.length} GPUs are`} ready: ${ready}.`
      : `No GPU: ${noGpu(entries, gpus.length, lacking)}.`,
    ...without(
      statusOf('libcupti') !== 'found' && gpus.length > 0,
      '`roofline profile` has no kernels of the GPU',
    ),
    ...withoutTorch,
  ].join(' ');
}

function noGpu(entries: readonly DiagnosisEntry[], count: number, lacking: readonly string[]): string {
  const unusable = entries.find(
    ({ component, status }) => component.startsWith('cuda:') && status !== 'found',
  );
  if (count === 0 && unusable !== undefined) return `${unusable.component} is unusable`;
  if (lacking.length === 0) return 'CUDA finds none';
  const isMissing = (name: string) =>
    entries.every((entry) => entry.component !== name || entry.status === 'missing');
  const how = lacking.every(isMissing) ? 'missing' : 'missing or unusable';
  return `${lacking.join(', ')} ${lacking.length === 1 ? 'is' : 'are'} ${how}`;
}

function without(isLacking: boolean, consequence: string): string[] {
  return isLacking ? [`For now ${consequence}.`] : [];
}

/** Those of the components that a device such as `cuda:0` cannot do without. */
export function neededBy(spec: string, entries: readonly DiagnosisEntry[]): DiagnosisEntry[] {
  const isNeeded = spec.startsWith('cuda')
    ? (component: string) => /^(GPU$|cuda:)/.test(component) || GPU_NEEDS.includes(component)
    : (component: string) => component === 'ONNX Runtime';
  return entries.filter(({ component }) => isNeeded(component));
}

/** The components that are not usable and what to do about each, one line a component. */
export function remedies(entries: readonly DiagnosisEntry[]): string[] {
  return entries
    .filter(({ status }) => status !== 'found')
    .map(({ component, status, detail, remedy = '' }) =>
      `${component} is ${status} (${detail.replace(/\.$/, '')}). ${remedy}`.trimEnd(),
    );
}

/** What `probe-device` finds. */
export const probeResult = z.object({
  /** Null when the device cannot be used. */
  device: deviceDescription.nullable(),
  /** Why it cannot. */
  problem: z.string().nullable(),
  diagnosis: z.array(diagnosisEntry),
});
export type ProbeResult = z.infer<typeof probeResult>;
