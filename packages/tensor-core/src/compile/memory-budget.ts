import { wrongArgument } from '@roofline/cuda/host';

const units: Readonly<Record<string, number>> = {
  ...{ B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 },
  ...{ KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 },
};

/** Bytes of a budget: a positive number of them, or a text as `100GiB`. Throws a RooflineError (code ARGUMENT), which names `owner`. */
export function budgetBytes(owner: string, budget: number | string): number {
  const bytes = typeof budget === 'string' ? bytesOfText(budget) : budget;
  if (typeof bytes === 'number' && bytes > 0 && Number.isFinite(bytes)) return Math.floor(bytes);
  throw wrongArgument(
    owner,
    'memoryBudget',
    'a positive number of bytes, or a text as 500MiB and 100GiB',
    budget,
  );
}

function bytesOfText(text: string): number {
  const [, digits, unit] = /^(\d+(?:\.\d+)?) ?([a-zA-Z]+)$/.exec(text) ?? [];
  const bytes = Object.hasOwn(units, unit ?? '') ? units[unit!]! : NaN;
  return Number(digits) * bytes;
}

/** `107.3 GiB`, `12.0 MiB`; rounded up, so that a budget of the text is enough. */
export function formatBytes(bytes: number): string {
  const [unit, size] = bytes < 2 ** 30 ? (['MiB', 2 ** 20] as const) : (['GiB', 2 ** 30] as const);
  const digits = bytes < 2 ** 20 ? 3 : 1;
  return `${(Math.ceil((bytes / size) * 10 ** digits) / 10 ** digits).toFixed(digits)} ${unit}`;
}
