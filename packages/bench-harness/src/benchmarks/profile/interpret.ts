import { cellSchema } from '../../parameters/cell-schema.ts';
import { workedOut, type Measurement } from '../../report/measurement.ts';
import { wayWords } from '../e2e/parameters.ts';
import { kernelSpans, phaseOf, selectSpans, type KernelSpan } from './kernel-spans.ts';
import { profileSettings, type ProfileCell, type ProfileSettings } from './parameters.ts';
import { peerKernels } from './peer/peer-kernels.ts';
import type { ProfileResult } from './result.ts';

const settingsSchema = cellSchema(profileSettings);

export type ProfileMeasurement = Measurement<ProfileCell, ProfileResult>;

/** The settings that a record was measured with. */
export const settingsOf = workedOut(({ record }: ProfileMeasurement): ProfileSettings =>
  settingsSchema.parse(record.settings),
);

/** The kernels of a measurement, put together once for all that shows them; null where there is no result. */
export const profiledOf = workedOut((measurement: ProfileMeasurement) => {
  const { record, cell, result } = measurement;
  if (result === null) return null;
  const settings = settingsOf(measurement);
  const spans = kernelSpans(result.steps);
  return {
    ...{ result, spans },
    /** Those that the settings select. */
    selected: selectSpans(spans, settings),
    /** What PyTorch ran; null where it was not asked, or failed. */
    peer: interpretPeer(result, settings),
    /** Whether a program ran op by op while it was profiled, as on the CPU: its plain steps, which ran as one, are others. */
    isOpByOp: cell.execution !== 'eager' && record.environment.device.type === 'cpu',
  };
});

export type Profiled = NonNullable<ReturnType<typeof profiledOf>>;
export type ProfiledPeer = NonNullable<Profiled['peer']>;

function interpretPeer({ peer }: ProfileResult, { phase }: ProfileSettings) {
  if (peer?.status !== 'ok') return null;
  const kernels = peerKernels(peer.steps);
  return {
    profile: peer,
    kernels,
    /** Those of the selected phase: PyTorch's kernels know no other ranges. */
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
