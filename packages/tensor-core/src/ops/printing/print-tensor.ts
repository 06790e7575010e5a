import { formatShape } from '../../base/shape.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { numberColumns } from './number-columns.ts';
import { readShown, shownStrides } from './shown-elements.ts';

const lineWidth = 75;
const prefix = 'tensor(';
const omission = '...';

/**
 * A tensor as text, for people: its values as NumPy prints them at four digits, then shape, dtype, device and
 * whether it requires a gradient. Above 1000 elements the first and last three of each dimension stand for all,
 * and no others are read. Waits for the device.
 */
export function printTensor(x: Tensor): string {
  const facts = `, shape ${formatShape(x.shape)}, ${x.dtype}, ${x.device.label}${gradientText(x)})`;
  const text = prefix + (x.isDisposed ? 'disposed' : valuesText(x));
  const lastLine = text.length - (text.lastIndexOf('\n') + 1);
  if (lastLine + facts.length <= lineWidth) return text + facts;
  return `${text},\n${' '.repeat(prefix.length)}${facts.slice(2)}`;
}

/** A tensor in a few words, for where it is nested too deep in what is printed. */
export function labelTensor(x: Tensor): string {
  return `[Tensor ${formatShape(x.shape)} ${x.dtype} ${x.device.label}]`;
}

function gradientText(x: Tensor): string {
  if (!x.requiresGrad) return '';
  return x.node ? `, requiresGrad by ${x.node.op.name}` : ', requiresGrad';
}

function valuesText(x: Tensor): string {
  if (x.size === 0) return '[]';
  const shown = readShown(x);
  const columns = numberColumns(x.dtype, shown.values);
  if (x.rank === 0) return columns[0]!;
  const strides = shownStrides(shown);
  const isCut = shown.indices.map(({ length }, dimension) => length < x.shape[dimension]!);

  const block = (dimension: number, start: number): string => {
    const length = shown.indices[dimension]!.length;
    const isLast = dimension === x.rank - 1;
    const items = Array.from({ length }, (_, i) =>
      isLast ? columns[start + i]! : block(dimension + 1, start + i * strides[dimension]!),
    );
    if (isCut[dimension]) items.splice(length / 2, 0, omission);
    const indent = ' '.repeat(prefix.length + dimension + 1);
    if (isLast) return `[${wrap(items, indent, x.rank)}]`;
    return `[${items.join(`,${'\n'.repeat(x.rank - 1 - dimension)}${indent}`)}]`;
  };
  return block(0, 0);
}

/** Items in lines, with a new line where one would leave too little room for what follows. */
function wrap(items: readonly string[], indent: string, closingBrackets: number): string {
  const widest = lineWidth - 1 - closingBrackets;
  const lines: string[] = [];
  let line = indent;
  for (const item of items) {
    if (line !== indent && line.length + item.length > widest) {
      lines.push(line.trimEnd());
      line = indent;
    }
    line += `${item}, `;
  }
  lines.push(line.slice(0, -2));
  return lines.join('\n').slice(indent.length);
}
