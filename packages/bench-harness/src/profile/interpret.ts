import type { CellRecord } from '../records/record.ts';
import { kernelSpans, selectSpans, type KernelSpan } from './kernel-spans.ts';
import { profileCell, profileSettings, type ProfileCell, type ProfileSettings } from './parameters.ts';
import { profileResult, type ProfileResult } from './result.ts';

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
}

export function interpretProfile(record: CellRecord): ProfileMeasurement {
  const cell = profileCell.parse(record.parameters);
  const settings = profileSettings.parse(record.settings);
  if (record.status !== 'ok') return { cell, settings, record, profiled: null };
  const result = profileResult.parse(record.result);
  const spans = kernelSpans(result.steps);
  return { cell, settings, record, profiled: { result, spans, selected: selectSpans(spans, settings) } };
}

/** The spans of the last step. */
export function lastStep(spans: readonly KernelSpan[], { steps }: ProfileResult): KernelSpan[] {
  return spans.filter(({ step }) => step === steps.length - 1);
}

/** `small-c256-b4-train-step-float32`, for names of files and ids. */
export function cellSlug({ size, context, batch, mode, dtype }: ProfileCell): string {
  return `${size}-c${context}-b${batch}-${mode}-${dtype}`.replace(/[^\w.-]+/g, '-');
}

export function describeProfileCell({ size, context, batch, mode, dtype }: ProfileCell): string {
  return `${size} · context ${context} · batch ${batch} · ${mode} · ${dtype}`;
}
