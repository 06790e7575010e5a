import { kinds, type Kind } from './random-steps/drawing.ts';

/** Which random programs a test draws; `npm run fuzz` sets others than the fixed ones. */
export interface FuzzSettings {
  /** The seed of the first program; the next one's is one more. */
  readonly seed: number;
  readonly programs: number;
  /** No program is begun once this many minutes have passed. */
  readonly minutes: number;
  readonly leftOut: ReadonlySet<Kind>;
}

/**
 * From ROOFLINE_FUZZ_SEED, ROOFLINE_FUZZ_PROGRAMS, ROOFLINE_FUZZ_MINUTES and ROOFLINE_FUZZ_LEAVE_OUT, a comma-separated list
 * of kinds of programs. Without them `seed` and `programs`, and nothing left out.
 */
export function fuzzSettings(seed: number, programs: number): FuzzSettings {
  return {
    seed: wholeNumber('ROOFLINE_FUZZ_SEED') ?? seed,
    programs: wholeNumber('ROOFLINE_FUZZ_PROGRAMS') ?? programs,
    minutes: wholeNumber('ROOFLINE_FUZZ_MINUTES') ?? Infinity,
    leftOut: kindsLeftOut(),
  };
}

function wholeNumber(name: string): number | null {
  const text = process.env[name];
  if (!text) return null;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0) throw new Error(`${name} must be a whole number, not ${text}.`);
  return value;
}

function kindsLeftOut(): ReadonlySet<Kind> {
  const given = (process.env['ROOFLINE_FUZZ_LEAVE_OUT'] ?? '').split(',').filter((name) => name !== '');
  const unknown = given.filter((name) => !kinds.some((kind) => kind === name));
  if (unknown.length > 0)
    throw new Error(`ROOFLINE_FUZZ_LEAVE_OUT: ${unknown.join(', ')} is none of ${kinds.join(', ')}.`);
  return new Set(given as Kind[]);
}

/** Says what was drawn where `npm run fuzz` or a variable set how much: minutes alone do not tell. */
export function sayWhatWasDrawn({ seed }: FuzzSettings, counts: Readonly<Record<string, number>>): void {
  if (!process.env['ROOFLINE_FUZZ_PROGRAMS'] && !process.env['ROOFLINE_FUZZ_MINUTES']) return;
  const said = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
  console.log(`from seed ${seed}: ${said.join(', ')}`);
}
