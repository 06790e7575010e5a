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
