import { cellSchema } from '../../parameters/cell-schema.ts';
import type { CellRecord } from '../../records/record.ts';
import { workedOut, type Measurement } from '../../report/measurement.ts';
import { wayWords } from '../e2e/parameters.ts';
import { kernelSpans, phaseOf, selectSpans, type KernelSpan } from './kernel-spans.ts';
import { profileSettings, type ProfileCell, type ProfileSettings } from './parameters.ts';
import { peerKernels, type PeerKernel } from './peer/peer-kernels.ts';
import type { MeasuredPeer, ProfileResult } from './result.ts';

const settingsSchema = cellSchema(profileSettings);

/** A record with its kernels put together. `profiled` is null unless status is `ok`. */
export interface ProfileMeasurement {
  readonly cell: ProfileCell;
  readonly settings: ProfileSettings;
  readonly record: CellRecord;
  readonly profiled: Profiled | null;
}

export interface Profiled {
  readonly result: ProfileResult;
  readonly spans: readonly KernelSpan[];
  /** Those that the settings select. */
  readonly selected: readonly KernelSpan[];
  /** Whether a program ran op by op while it was profiled, as on the CPU: its plain steps, which ran as one, are others. */
  readonly isOpByOp: boolean;
  /** What PyTorch ran; null where it was not asked, or failed. */
  readonly peer: ProfiledPeer | null;
}

export interface ProfiledPeer {
  readonly profile: MeasuredPeer;
  readonly kernels: readonly PeerKernel[];
  /** Those of the selected phase: PyTorch's kernels know no other ranges. */
  readonly selected: readonly PeerKernel[];
}

/** A measurement with its kernels put together, once for all that shows them. */
export const profileOf = workedOut(
  ({ record, cell, result }: Measurement<ProfileCell, ProfileResult>): ProfileMeasurement => {
    const settings = settingsSchema.parse(record.settings);
    if (result === null) return { cell, settings, record, profiled: null };
    const spans = kernelSpans(result.steps);
    const selected = selectSpans(spans, settings);
    const isOpByOp = cell.execution !== 'eager' && record.environment.device.type === 'cpu';
    return {
      cell,
      settings,
      record,
      profiled: { result, spans, selected, isOpByOp, peer: interpretPeer(result, settings) },
    };
  },
);

function interpretPeer({ peer }: ProfileResult, { phase }: ProfileSettings): ProfiledPeer | null {
  if (peer?.status !== 'ok') return null;
  const kernels = peerKernels(peer.steps);
  return {
    profile: peer,
    kernels,
    selected: kernels.filter((kernel) => phase === 'all' || phaseOf(kernel) === phase),
  };
}

/** The spans of the last step. */
export function lastStep(spans: readonly KernelSpan[], { steps }: ProfileResult): KernelSpan[] {
  return spans.filter(({ step }) => step === steps.length - 1);
}

/** `small-c256-b4-train-step-float32`, for names of files and ids. */
export function cellSlug(cell: ProfileCell): string {
  const { size, context, batch, mode, dtype } = cell;
  const words = [size, `c${context}`, `b${batch}`, mode, dtype, ...wayWords(cell)];
  return words.join('-').replace(/[^\w.-]+/g, '-');
}
