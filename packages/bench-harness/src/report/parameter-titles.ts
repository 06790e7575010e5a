import type { Column } from '@roofline/reports';
import { capitalize, inWords } from './values-in-words.ts';

/** Of the parameters that tables do not title by their own names. */
const titles: Readonly<Record<string, string>> = {
  headDimension: 'd',
  peerAttention: "PyTorch's attention",
  peerExecution: "PyTorch's execution",
  warmup: 'Warm-up',
  worldSize: 'Ranks',
};

/** The title of a parameter's column, in all tables: `Context`, `PyTorch's attention`. */
export function parameterTitle(name: string): string {
  return Object.hasOwn(titles, name) ? titles[name]! : capitalize(inWords(name));
}

/** The column of a parameter. */
export function parameterColumn(key: string, kind: 'text' | 'number' = 'text'): Column {
  return { key, label: parameterTitle(key), kind };
}

/** The same of a count, which is shown as it was given, not rounded. */
export function countColumn(key: string): Column {
  return { ...parameterColumn(key), align: 'right' };
}
