import type { Json } from './json.ts';

/** A setting in words: objects by their members (`torch 2.11.0`), what is absent as `none`. */
export function describeValue(value: Json | undefined): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' ? Object.values(value).map(describeValue).join(' ') : String(value);
}
