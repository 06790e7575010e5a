import type { Column, Row, Table } from '@roofline/reports';
import type { Pass } from '../../../attention/work.ts';
import { canonicalJson } from '../../../records/json.ts';
import { attentionCaption, attentionColumns } from '../../../report/attention-columns.ts';
import { besideEager, besideEagerColumns, type TimedWay } from '../../../report/beside-eager.ts';
import { bothPasses, type AttentionResult } from '../result.ts';
import { attentionRow, type AttentionMeasurement } from './interpret.ts';

/** What a program is made of: its backward pass cannot be separated. */
const passes = { forward: 'forward', both: 'forward and backward' } as const satisfies Partial<
  Record<Pass, string>
>;

/** Compiled attention compared with eager, pass by pass; null where no shape was measured both ways. */
export function compiledAttentionTable(measurements: readonly AttentionMeasurement[]): Table | null {
  const eager = new Map(
    measurements
      .filter(({ cell }) => cell.execution === 'eager')
      .map(({ cell, measured }) => [canonicalJson(cell), measured]),
  );
  const rows = measurements.flatMap((each): Row[] => {
    const { cell, measured: compiled } = each;
    const other = eager.get(canonicalJson({ ...cell, execution: 'eager' }));
    if (cell.execution === 'eager' || !compiled || !other) return [];
    const { attention, execution, batch, headDimension, sequence, dtype } = attentionRow(each);
    return (['forward', 'both'] as const).map((pass) => ({
      ...{ attention, execution, batch, headDimension, sequence, dtype },
      pass: passes[pass],
      ...besideEager(
        wayOf(other.result, pass),
        wayOf(compiled.result, pass),
        compiled.result.compilation?.[pass] ?? null,
      ),
    }));
  });
  if (rows.length === 0) return null;
  return {
    kind: 'table',
    id: 'compiled-beside-eager',
    title: 'Compiled beside eager',
    caption: `${attentionCaption(rows)} Eager forward and backward are the sum of the two.`,
    columns: [
      ...attentionColumns(rows),
      { key: 'attention', label: 'Attention', kind: 'text', emphasis: 'strong' },
      ...(rows.some(({ execution }) => execution !== 'compiled') ? [executionColumn] : []),
      { key: 'pass', label: 'Pass', kind: 'text' },
      ...besideEagerColumns,
    ],
    rows,
  };
}

const executionColumn: Column = { key: 'execution', label: 'Execution', kind: 'text' };

function wayOf(result: AttentionResult, pass: keyof typeof passes): TimedWay {
  const { peakForwardBytes, peakAllocatedBytes } = result.memory;
  return pass === 'forward'
    ? { ...result.forward, peakBytes: peakForwardBytes }
    : { ...bothPasses(result), peakBytes: peakAllocatedBytes };
}
