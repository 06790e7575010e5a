import { appendFileSync } from 'node:fs';
import { renderMarkdown, type Table } from '@roofline/reports';
import { orUsageError } from '../attempt.ts';

/** What a comparison found, as a workflow of GitHub shows it on the page of its run. */
export interface StepSummary {
  readonly table: Table;
  readonly sentences: readonly string[];
  /** The ratio that no cell may pass; null where there is none. */
  readonly limit: string | null;
  readonly worse: readonly { readonly cell: string; readonly reason: string }[];
}

/** Appends it to `path`, the file that GITHUB_STEP_SUMMARY names. Throws UsageError where that cannot be written. */
export function appendStepSummary(path: string, summary: StepSummary): void {
  orUsageError(
    () => appendFileSync(path, `${stepSummary(summary)}\n`),
    (code) =>
      `Cannot write the summary to ${path} (${code}), which GITHUB_STEP_SUMMARY names: make it writable, or unset the variable.`,
  );
}

function stepSummary({ table, sentences, limit, worse }: StepSummary): string {
  const verdict =
    worse.length === 0
      ? 'No cell got worse'
      : `${worse.length} ${worse.length === 1 ? 'cell' : 'cells'} got worse`;
  const allowed = limit === null ? '' : ` than ${limit} allows`;
  return [
    `## ${verdict}${allowed}`,
    ...(worse.length > 0 ? [worse.map(({ cell, reason }) => `- **${cell}**: ${reason}`).join('\n')] : []),
    sentences.join('\n\n'),
    renderMarkdown(table),
  ].join('\n\n');
}
