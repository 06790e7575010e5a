import { UsageError } from '../../errors.ts';

const units: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  // nccl-tests' letters count in powers of two.
  ...{ K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 },
  ...{ KIB: 2 ** 10, MIB: 2 ** 20, GIB: 2 ** 30 },
};

/** Bytes of `10MB`, a million each, or of `8M` and `8MiB`, each 2^20. */
export function parseSize(flag: string, text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(text.trim()) ?? [];
  const bytes = Math.round(Number(number) * (units[unit.toUpperCase()] ?? NaN));
  if (number === '' || !Number.isSafeInteger(bytes) || bytes < 1)
    throw new UsageError(`--${flag} wants a size such as 10MB, 8M or 4096, not '${text}'.`);
  return bytes;
}

/** nccl-tests' -b, -e and -f: from the one to the other, times the factor each. */
export function sizesBetween(begin: number, end: number, factor: number): number[] {
  if (end < begin) throw new UsageError(`--end ${end} lies below --begin ${begin}.`);
  if (!(factor > 1)) throw new UsageError(`--factor wants a number above 1, not ${factor}.`);
  const sizes = [];
  for (let bytes = begin; bytes <= end; bytes = Math.ceil(bytes * factor)) sizes.push(bytes);
  return sizes;
}

const decimalUnits = [
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
] as const;

/** `10 MB` of bytes that are that; else MiB and so on, or bytes. */
export function sizeInWords(bytes: number): string {
  const decimal = decimalUnits.find(([unit]) => bytes >= unit && Number.isInteger(bytes / unit));
  if (decimal) return `${bytes / decimal[0]} ${decimal[1]}`;
  for (const [power, unit] of [
    [30, 'GiB'],
    [20, 'MiB'],
    [10, 'KiB'],
  ] as const)
    if (bytes >= 2 ** power && Number.isInteger(bytes / 2 ** power)) return `${bytes / 2 ** power} ${unit}`;
  return `${bytes} B`;
}
