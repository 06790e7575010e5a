import type { Table } from '@roofline/reports';
import { z } from 'zod';

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
      { key: 'detail', label: 'Detail', kind: 'text' },
    ],
    rows: entries.map(({ component, status, version, detail, path }) => ({
      component,
      found: status,
      version,
      detail: path === undefined || detail.includes(path) ? detail : `${detail} (${path})`,
    })),
  };
}

/** The components that are not usable and what to do about each, one line a component. */
export function remedies(entries: readonly DiagnosisEntry[]): string[] {
  return entries
    .filter(({ status }) => status !== 'found')
    .map(({ component, status, detail, remedy = '' }) =>
      `${component} is ${status} (${detail}). ${remedy}`.trimEnd(),
    );
}
