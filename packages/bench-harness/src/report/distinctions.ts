import { deviceIdentity } from '../records/environment.ts';
import type { CellRecord } from '../records/record.ts';
import { canonicalJson, type Json, type JsonObject } from '../records/json.ts';

const MOST_NAMED = 3;

/** What sets each of several groups of records of one benchmark apart from the others, in a few words. */
export function distinctions(groups: readonly (readonly CellRecord[])[]): string[] {
  const ways = [
    (records: readonly CellRecord[]) => records[0]!.environment.device.name,
    (records: readonly CellRecord[]) => deviceIdentity(records[0]!.environment),
    (records: readonly CellRecord[]) => sweptValues(records, 'study'),
    (records: readonly CellRecord[]) => sweptValues(records, 'size'),
  ];
  for (const names of [...ways.map((way) => groups.map(way)), conditionsApart(groups)]) {
    if (names.every((name) => name !== '') && new Set(names).size === groups.length) return names;
  }
  return groups.map((_, index) => String(index + 1));
}

/** `8b, 10b`, or of many the first and the last: `small to 2.7b`. */
function sweptValues(records: readonly CellRecord[], key: string): string {
  const values = [...new Set(records.map(({ parameters }) => parameters[key]))];
  if (values.some((value) => typeof value !== 'string')) return '';
  return values.length <= MOST_NAMED ? values.join(', ') : `${values[0]} to ${values.at(-1)}`;
}

/** The settings and environment variables in which the groups differ: `warmup 2, steps 5`. */
function conditionsApart(groups: readonly (readonly CellRecord[])[]): string[] {
  const records = groups.map(([first]) => first!);
  const variables = new Set(records.flatMap(({ environment }) => Object.keys(environment.variables)));
  const conditions = records.map(({ settings, environment }): JsonObject => ({
    ...settings,
    ...Object.fromEntries([...variables].map((name) => [name, environment.variables[name] ?? null])),
  }));
  const keys = Object.keys(conditions[0]!).filter(
    (key) =>
      conditions.every((each) => key in each) &&
      new Set(conditions.map((each) => canonicalJson({ value: each[key]! }))).size > 1,
  );
  return conditions.map((each) => keys.map((key) => `${key} ${settingText(each[key]!)}`).join(', '));
}

function settingText(value: Json): string {
  if (value === null) return 'none';
  if (typeof value === 'object') return Object.values(value).join(' ');
  return String(value);
}
