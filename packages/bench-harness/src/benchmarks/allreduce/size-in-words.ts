const units = [
  [1e9, 'GB'],
  [1e6, 'MB'],
  [1e3, 'kB'],
] as const;

/** `10 MB` of bytes that are that; else MiB and so on, or bytes. */
export function sizeInWords(bytes: number): string {
  const decimal = units.find(([unit]) => bytes >= unit && Number.isInteger(bytes / unit));
  if (decimal) return `${bytes / decimal[0]} ${decimal[1]}`;
  for (const [power, unit] of [
    [30, 'GiB'],
    [20, 'MiB'],
    [10, 'KiB'],
  ] as const)
    if (bytes >= 2 ** power && Number.isInteger(bytes / 2 ** power)) return `${bytes / 2 ** power} ${unit}`;
  return `${bytes} B`;
}
