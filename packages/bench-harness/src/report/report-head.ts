import type { Report } from '@roofline/reports';
import type { Parameters } from '../parameters/parameter.ts';
import type { CellRecord } from '../records/record.ts';
import { commitOf, environmentFacts } from './environment-facts.ts';

/** What every report begins with: its machines and commit, and the time and environment of its latest record. */
export function reportHead(
  title: string,
  records: readonly CellRecord[],
  settings: Parameters = {},
): Pick<Report, 'title' | 'subtitle' | 'createdAt' | 'environment'> {
  const latest = records.reduce((a, b) => (a.startedAt > b.startedAt ? a : b));
  return {
    title,
    subtitle: placeText(records),
    createdAt: latest.startedAt,
    environment: environmentFacts(latest, settings),
  };
}

/** `2 × NVIDIA H200 · commit dbb7b9d`: of several commits, how many. */
export function placeText(records: readonly CellRecord[]): string {
  const machines = [...Map.groupBy(records, ({ environment }) => environment.device.name)].map(
    ([name, group]) => {
      const count = Math.max(...group.map(devicesOf));
      return count === 1 ? name : `${count} × ${name}`;
    },
  );
  const commits = new Set(
    records.flatMap(({ environment }) => (environment.git ? commitOf(environment) : [])),
  );
  const [commit] = commits;
  if (commit === undefined) return machines.join(', ');
  const said = commits.size === 1 ? `commit ${commit.slice(0, 7)}` : `${commits.size} commits`;
  return `${machines.join(', ')} · ${said}`;
}

/** Ranks have a GPU each. */
function devicesOf({ environment, parameters }: CellRecord): number {
  const ranks = parameters['ranks'] ?? parameters['worldSize'];
  return environment.device.type === 'cuda' && typeof ranks === 'number' ? ranks : 1;
}
