import type { CellRecord } from '../../../records/record.ts';
import { e2eCell } from '../../e2e/parameters.ts';

/** A note on compiled steps on the CPU: ONNX Runtime does not report the memory that it takes in a graph. */
export function opByOpSentence(records: readonly CellRecord[]): string[] {
  const isOpByOp = ({ parameters, environment }: CellRecord) =>
    e2eCell.parse(parameters).execution !== 'eager' && environment.device.type === 'cpu';
  if (!records.some(isOpByOp)) return [];
  return [
    'On the CPU the ops of compiled steps ran one by one while they were recorded, so that what ONNX Runtime takes ' +
      'inside a graph is not reported.',
  ];
}
