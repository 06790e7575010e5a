import type { E2eCell } from '../benchmarks/e2e/parameters.ts';
import { isUsual } from './configuration-columns.ts';

type Parameter = Exclude<keyof E2eCell, 'shape'>;

/** Short names of the cells that share a table or plot. */
export interface CellNames {
  /** `small`, or with what else is swept: `small, context 256`. */
  name(cell: E2eCell): string;
  /** What is the same in all cells and in no name: `context 256, batch 4`. Empty where all is swept. */
  readonly shared: string;
}

const allParameters: readonly Parameter[] = [
  'size',
  'context',
  'batch',
  'attention',
  'execution',
  'peerAttention',
  'peerExecution',
  'mode',
  'dtype',
];

/** Names cells by their sizes and by those of the other parameters that are swept. */
export function cellNames(
  cells: readonly E2eCell[],
  parameters: readonly Parameter[] = allParameters,
): CellNames {
  const isSwept = (key: Parameter) => new Set(cells.map((cell) => cell[key])).size > 1;
  const tellsBoth = (['attention', 'peerAttention'] as const).every(
    (key) => parameters.includes(key) && isSwept(key),
  );
  const peers = tellsBoth ? peersOfAttentions(cells) : null;
  const isNamed = (key: Parameter) => key === 'size' || (isSwept(key) && !(key === 'peerAttention' && peers));
  const told = (cell: E2eCell | undefined, keys: readonly Parameter[]) =>
    cell ? keys.map((key) => parameterText(cell, key)).join(', ') : '';
  const [named, shared] = [parameters.filter(isNamed), parameters.filter((key) => !isNamed(key))];
  const said = shared.filter((key) => !isSwept(key) && !isUsual(cells[0]?.[key]));
  const facts = [...(said.length > 0 ? [told(cells[0], said)] : []), ...(peers ?? [])];
  return { name: (cell) => told(cell, named), shared: facts.join(', ') };
}

/** In words, which of PyTorch's attentions is compared with each of ours; null where one has several. */
function peersOfAttentions(cells: readonly E2eCell[]): string[] | null {
  const peers = new Map(cells.map(({ attention, peerAttention }) => [attention, peerAttention]));
  if (cells.some(({ attention, peerAttention }) => peers.get(attention) !== peerAttention)) return null;
  return [...peers].map(([attention, peer]) => `PyTorch's ${peer} attention beside ${attention}`);
}

/** A number or an attention alone says nothing. */
function parameterText(cell: E2eCell, key: Parameter): string {
  if (key === 'context' || key === 'batch') return `${key} ${cell[key]}`;
  if (key === 'attention') return `${cell[key]} attention`;
  if (key === 'peerAttention') return `PyTorch's ${cell[key]} attention`;
  if (key === 'peerExecution') return `PyTorch ${cell[key]}`;
  return cell[key];
}
