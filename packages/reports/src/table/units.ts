import type { ColumnKind } from '../model.ts';

export interface Unit {
  name: string;
  /** How many of the base unit it holds. */
  size: number;
}

/** The units of the kinds that choose among some, the largest first; raw values are in the one of size 1. */
const UNITS: Readonly<Partial<Record<ColumnKind, readonly Unit[]>>> = {
  duration: [
    { name: 's', size: 1e3 },
    { name: 'ms', size: 1 },
    { name: 'µs', size: 1e-3 },
    { name: 'ns', size: 1e-6 },
  ],
  bytes: [
    { name: 'TiB', size: 2 ** 40 },
    { name: 'GiB', size: 2 ** 30 },
    { name: 'MiB', size: 2 ** 20 },
    { name: 'KiB', size: 2 ** 10 },
    { name: 'B', size: 1 },
  ],
};

/** The names of a kind's units; undefined for a kind whose unit is any word. */
export function unitNames(kind: ColumnKind): string[] | undefined {
  return UNITS[kind]?.map(({ name }) => name);
}

/** The unit of a name; undefined for a kind whose unit is any word. */
export function unitOf(kind: ColumnKind, name: string): Unit | undefined {
  return UNITS[kind]?.find((unit) => unit.name === name);
}

/** A unit and all smaller ones of its kind, the largest first. */
export function smallerUnits(kind: ColumnKind, unit: Unit): readonly Unit[] {
  return (UNITS[kind] ?? []).filter(({ size }) => size <= unit.size);
}

/** The unit that a value fits best; undefined for a kind whose unit is any word. */
export function fittingUnit(kind: ColumnKind, value: number): Unit | undefined {
  const units = UNITS[kind];
  const magnitude = Math.abs(value);
  if (magnitude === 0 || !Number.isFinite(magnitude)) return units?.find(({ size }) => size === 1);
  return units?.find(({ size }) => magnitude >= size) ?? units?.at(-1);
}
