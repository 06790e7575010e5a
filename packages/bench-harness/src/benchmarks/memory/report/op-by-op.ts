import type { Block } from '@roofline/reports';
import type { MemoryMeasurement } from './tables.ts';

/** Whether the ops of a compiled step were recorded one by one. */
export function runsOpByOp({ cell, record }: MemoryMeasurement): boolean {
  return cell.execution !== 'eager' && record.environment.device.type === 'cpu';
}

/** A note on compiled steps on the CPU: ONNX Runtime does not report the memory that it takes in a graph. */
export function opByOpNotes(cells: readonly MemoryMeasurement[]): Block[] {
  if (!cells.some(runsOpByOp)) return [];
  const text =
    'On the CPU the ops of compiled steps ran one by one while they were recorded, so that what ONNX Runtime takes ' +
    'inside a graph is not reported.';
  return [{ kind: 'note', tone: 'warning', text }];
}
