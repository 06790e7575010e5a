import type { Table } from '@roofline/reports';
import { byteSize } from '@roofline/tensor-core';
import { tablesOf, type RowItem } from '../../../report/declared-table.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { column } from '../../../report/standard-columns.ts';
import { ddpCellParameters, sendsActivations, type DdpCell } from '../parameters.ts';
import { timesOf, type DdpMeasurement } from './measured.ts';

/** What a rank sends in a step. */
interface Volume extends RowItem {
  readonly cell: DdpCell;
  /** Of the gradients' reductions, whose bytes the rank has counted. */
  readonly gradientsSentBytes: number;
  /** Of parameters that are gathered, or come from the rank that updated them. */
  readonly parametersSentBytes: number;
  readonly sentBytes: number;
  /** 0 without sharding, 1 with sharded moments, 3 with sharded parameters. */
  readonly stage: number;
  readonly zeroBytes: number;
}

/** Sendings of every parameter's bytes, in float32, by ZeRO's stage (Rajbhandari et al. 2020, section 7). */
const SENDINGS: Readonly<Record<number, number>> = { 0: 2, 1: 2, 3: 3 };

/** Of rings, in which each rank sends (n - 1) / n of what is gathered or scattered, and twice that of what is all-reduced. */
function volumes(cells: readonly DdpMeasurement[]): Volume[] {
  return measuredOf(cells).flatMap((each): Volume[] => {
    const { record, cell, result } = each;
    const { worldSize, mode, optimizer, dtype } = cell;
    // Divided layers and sequences send activations, for which ZeRO has no formula.
    if (worldSize === 1 || mode === 'hybrid' || sendsActivations(cell)) return [];
    const part = (worldSize - 1) / worldSize;
    const isDivided = mode === 'fsdp';
    const stage = isDivided ? 3 : optimizer === 'sharded' ? 1 : 0;
    const weightBytes = Float32Array.BYTES_PER_ELEMENT * result.parameterCount;
    const gathered = 2 * byteSize(dtype) * result.parameterCount;
    const gradientsSentBytes = (isDivided ? 1 : 2) * part * timesOf(each).gradientBytes;
    const parametersSentBytes = part * (isDivided ? gathered : optimizer === 'sharded' ? weightBytes : 0);
    const zeroBytes = SENDINGS[stage]! * part * weightBytes;
    const sentBytes = gradientsSentBytes + parametersSentBytes;
    return [{ record, cell, gradientsSentBytes, parametersSentBytes, sentBytes, stage, zeroBytes }];
  });
}

/** Volume next to that of ZeRO's formula. */
export function volumeTable(cells: readonly DdpMeasurement[]): Table[] {
  const sent = { unitGroup: 'sent' } as const;
  return tablesOf<Volume>(
    {
      ...{ id: 'ddp-volume', title: 'Volume of a step', parameters: ddpCellParameters },
      caption:
        "What a rank sends in rings, (n - 1) / n of what is gathered or scattered and twice that of what is all-reduced. ZeRO's volume is " +
        'that of two sendings of all parameters in float32, or three where they are sharded: its stage 1 scatters gradients to the ranks that ' +
        'update them, where ours all-reduces them whole; ours gathers in the dtype of the products.',
      columns: [
        column.bytes('gradientsSentBytes', 'Gradients', sent),
        column.bytes('parametersSentBytes', 'Parameters', sent),
        column.bytes('sentBytes', 'Sent', { ...sent, emphasis: 'strong' }),
        column.count('stage', "ZeRO's stage"),
        column.bytes('zeroBytes', 'By its formula', sent),
        column.ratio('volumeRatio', 'Sent / formula', ({ sentBytes, zeroBytes }) => sentBytes / zeroBytes),
      ],
    },
    volumes(cells),
  );
}
