import type { Table } from '@roofline/reports';
import { tableOf, type ColumnOf, type RowItem, type TableOf } from '../../../report/declared-table.ts';
import { column } from '../../../report/standard-columns.ts';
import { stepNames } from '../../e2e/parameters.ts';
import { profiledOf, type Profiled, type ProfileMeasurement } from '../interpret.ts';

export type Profiles = readonly ProfileMeasurement[];

/** What a row holds besides its cell. */
type RowOf<Values> = Values & RowItem & { readonly cellName: string };

interface Declared<Values> extends Pick<TableOf<RowItem>, 'id' | 'title'> {
  readonly caption?: string;
  readonly columns: readonly ColumnOf<Values>[];
  /** Whether a table of one cell names it too. */
  readonly namesOne?: boolean;
  /** Whether the caption says what all cells share and no name does. */
  readonly saysShared?: boolean;
}

/** The rows of each profiled cell, and one that says why another has none. */
export function profileTable<Values extends object>(
  { caption, columns, namesOne = false, saysShared = false, ...declared }: Declared<Values>,
  profiles: Profiles,
  rowsOf: (profiled: Profiled, profile: ProfileMeasurement) => readonly (Values & Partial<RowItem>)[],
): Table {
  const names = stepNames(profiles);
  const shared = saysShared && names.shared !== '' && `All rows: ${names.shared}.`;
  const cellColumn = column.text<RowOf<Values>>('cell', 'Cell', ({ cellName }) => cellName, {
    ...{ everyRow: true, overflow: 'shorten', shown: () => namesOne || profiles.length > 1 },
  });
  const rows = profiles.flatMap((profile): RowOf<Values>[] => {
    const { record, cell } = profile;
    const own = { record, cell: {}, cellName: names.name(cell) };
    const profiled = profiledOf(profile);
    if (profiled === null) return [own as RowOf<Values>];
    return rowsOf(profiled, profile).map((values) => ({ ...own, ...values }));
  });
  return tableOf(
    {
      ...{ ...declared, caption: [caption, shared].filter(Boolean).join(' ') },
      columns: [cellColumn, ...(columns as readonly ColumnOf<RowOf<Values>>[])],
    },
    rows,
  );
}

/** The same table, unless it has no rows. */
export function profileTables<Values extends object>(
  ...all: Parameters<typeof profileTable<Values>>
): Table[] {
  const table = profileTable(...all);
  return table.rows.length === 0 ? [] : [table];
}

export const phaseColumn = column.text<{ readonly phase: string }>('phase', 'Phase', {
  emphasis: 'strong',
});

/** A mean over the steps of something that is counted. */
export const perStep = { digits: 1 } as const;
