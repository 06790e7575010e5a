import type { Report, Row, Section } from '@roofline/reports';
import { inWords } from '../parameters/words.ts';
import { describeValue } from '../records/describe-value.ts';
import type { CellRecord } from '../records/record.ts';
import { commitOf, placeFacts } from './environment-facts.ts';

type Run = readonly CellRecord[];

/** What readers need to judge numbers of several runs: each fact once, with all its values. */
export function factsOfRuns(runs: readonly Run[]): Report['environment'] {
  const facts = runs.flatMap((run) => placeFacts(run.at(-1)!));
  return [...Map.groupBy(facts, ({ label }) => label)].map(([label, group]) => ({
    label,
    value: [...new Set(group.map(({ value }) => value))].join('; '),
  }));
}

/** With which settings, at which commit and when each part was measured, to be unfolded. */
export function runsSection(
  parts: readonly { readonly label: string; readonly records: readonly CellRecord[] }[],
): Section {
  const rows = parts.flatMap(({ label, records }) =>
    [...Map.groupBy(records, settingsOf)].map(([settings, run]): Row => ({
      ...{ part: label, cells: run.length, settings },
      commit: [...new Set(run.map(({ environment }) => commitOf(environment).slice(0, 8)))].join(', '),
      day: [...new Set(run.map(({ startedAt }) => startedAt.slice(0, 10)))].join(', '),
    })),
  );
  return {
    ...{ id: 'runs', title: 'Settings', folded: true },
    blocks: [
      {
        ...{ kind: 'table', id: 'settings-of-runs', title: 'Runs' },
        columns: [
          { key: 'part', label: 'Part', kind: 'text' },
          { key: 'cells', label: 'Cells', kind: 'number' },
          { key: 'settings', label: 'Settings', kind: 'text' },
          { key: 'commit', label: 'Commit', kind: 'text' },
          { key: 'day', label: 'Day', kind: 'text' },
        ],
        rows,
      },
    ],
  };
}

function settingsOf({ settings, environment: { variables } }: CellRecord): string {
  const words = Object.entries(settings).map(([name, value]) => `${inWords(name)} ${describeValue(value)}`);
  return [...words, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)].join(', ');
}
