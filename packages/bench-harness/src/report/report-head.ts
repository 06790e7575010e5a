import type { Report } from '@roofline/reports';
import type { Parameters } from '../parameters/parameter.ts';
import type { CellRecord } from '../records/record.ts';
import { environmentFacts } from './environment-facts.ts';

/** What every report begins with: its device, and the time and environment of its latest record. */
export function reportHead(
  title: string,
  records: readonly CellRecord[],
  settings: Parameters = {},
): Pick<Report, 'title' | 'subtitle' | 'createdAt' | 'environment'> {
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  return {
    title,
    subtitle: latest.environment.device.name,
    createdAt: latest.startedAt,
    environment: environmentFacts(latest, settings),
  };
}
