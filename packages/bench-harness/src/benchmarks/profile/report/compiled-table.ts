import type { Row, Table } from '@roofline/reports';
import { canonicalJson } from '../../../records/json.ts';
import { stepNames } from '../../e2e/parameters.ts';
import type { Profiled, ProfileMeasurement } from '../interpret.ts';
import { stepRow } from './shares.ts';
import { cellColumn, milliseconds } from './table-parts.ts';

/** Compiled steps compared with eager ones of the same cell; null where no cell was profiled both ways on a GPU. */
export function compiledProfileTable(measurements: readonly ProfileMeasurement[]): Table | null {
  const eager = new Map(
    measurements
      .filter(({ cell }) => cell.execution === 'eager')
      .map(({ cell, profiled }) => [canonicalJson(cell), profiled]),
  );
  const names = stepNames(
    measurements.filter(({ cell }) => cell.execution !== 'eager'),
    ['size', 'context', 'batch', 'attention', 'execution', 'mode', 'dtype'],
  );
  const rows = measurements.flatMap(({ cell, profiled: compiled }): Row[] => {
    const other = eager.get(canonicalJson({ ...cell, execution: 'eager' }));
    if (cell.execution === 'eager' || !compiled || !other || compiled.isOpByOp) return [];
    return [{ cell: names.name(cell), ...rowOf(other, compiled) }];
  });
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id: 'compiled-beside-eager',
    title: 'Compiled beside eager',
    caption: 'Medians of a step, profiled.',
    columns: [
      cellColumn,
      { key: 'eagerKernels', label: 'Kernels, eager', kind: 'number', digits: 1 },
      { key: 'compiledKernels', label: 'Kernels, compiled', kind: 'number', digits: 1, emphasis: 'strong' },
      milliseconds('eagerMs', 'Kernel time, eager'),
      { ...milliseconds('compiledMs', 'Kernel time, compiled'), emphasis: 'strong' },
      { key: 'ratio', label: 'Compiled / eager', kind: 'ratio', emphasis: 'strong' },
      { key: 'eagerIdle', label: 'Idle, eager', kind: 'percent' },
      { key: 'compiledIdle', label: 'Idle, compiled', kind: 'percent', emphasis: 'strong' },
      milliseconds('compileMs', 'Compiling', 'By the wall clock, until the first step ran as a program.'),
    ],
    rows,
  };
}

function rowOf(eager: Profiled, compiled: Profiled): Row {
  const [before, after] = [eager, compiled].map((profiled) => stepRow(profiled));
  return {
    eagerKernels: before!.kernels,
    compiledKernels: after!.kernels,
    eagerMs: before!.kernelMs,
    compiledMs: after!.kernelMs,
    ratio: Number(after!.kernelMs) / Number(before!.kernelMs),
    eagerIdle: before!.idleShare,
    compiledIdle: after!.idleShare,
    compileMs: compiled.result.compilation?.durationMs ?? null,
  };
}
