import { formatRatio, type Block, type Table } from '@roofline/reports';
import { torchAttentions } from '../../../attention/peer-kinds.ts';
import { summarize } from '../../../measuring/statistics.ts';
import { column } from '../../../report/standard-columns.ts';
import { tablesOf } from '../../../report/declared-table.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { peerFailures } from '../../../report/peer-failures.ts';
import { attentionName, attentionParameters } from '../parameters.ts';
import { timeOf, type AttentionMeasurement } from './measured.ts';

type Cells = readonly AttentionMeasurement[];

/** The medians of each cell, and PyTorch's. */
function besideTorch(cells: Cells) {
  return measuredOf(cells).flatMap((each) => {
    const { peer, memory } = each.result;
    if (peer?.status !== 'ok') return [];
    const forwardMs = timeOf(each, 'forward')!.time.median;
    // Of a program of both passes the difference to that of the forward pass.
    const backwardMs = timeOf(each, 'backward')?.time.median ?? timeOf(each, 'both')!.time.median - forwardMs;
    const [peerForwardMs, peerBackwardMs] = [peer.forward, peer.backward].map(
      ({ deviceMs }) => summarize(deviceMs).median,
    ) as [number, number];
    return {
      ...{ record: each.record, cell: each.cell, peer: torchAttentions[peer.attention] },
      ...{ forwardMs, peerForwardMs, forwardRatio: forwardMs / peerForwardMs },
      ...{ backwardMs, peerBackwardMs, backwardRatio: backwardMs / peerBackwardMs },
      beforeBackwardBytes: memory.beforeBackwardBytes,
      peerBeforeBackwardBytes: peer.memory.beforeBackwardBytes,
    };
  });
}

/** Our passes next to PyTorch's; no table without a peer. */
export function besideTorchTable(cells: Cells): Table[] {
  const held = { unitGroup: 'held', shown: 'filled' } as const;
  return tablesOf<ReturnType<typeof besideTorch>[number]>(
    {
      ...{ id: 'beside-torch', title: "Beside PyTorch's", parameters: attentionParameters },
      caption:
        "Medians, both in turn in one run. A compiled backward pass of ours is that of both passes' program less that of the forward " +
        "pass's; PyTorch's memory has its mask in it.",
      columns: [
        column.text('peer', 'PyTorch runs'),
        column.ms('forwardMs', 'Forward'),
        column.ms('peerForwardMs', "Forward, PyTorch's"),
        column.ratio('forwardRatio', 'Forward, ours / theirs', { emphasis: 'strong' }),
        column.ms('backwardMs', 'Backward'),
        column.ms('peerBackwardMs', "Backward, PyTorch's"),
        column.ratio('backwardRatio', 'Backward, ours / theirs', { emphasis: 'strong' }),
        column.bytes('beforeBackwardBytes', 'Before backward', held),
        column.bytes('peerBeforeBackwardBytes', "Before backward, PyTorch's", held),
      ],
    },
    besideTorch(cells),
  );
}

/** The least and the most time that ours take of PyTorch's, by how they run. */
export function besideTorchFindings(cells: Cells): string[] {
  const groups = Map.groupBy(besideTorch(cells), ({ cell, peer }) => `${attentionName(cell)}|${peer}`);
  return [...groups].map(([names, of]) => {
    const [ours, theirs] = names.split('|');
    const [forward, backward] = (['forwardRatio', 'backwardRatio'] as const).map((key) =>
      rangeInWords(of.map((each) => each[key])),
    );
    return `Our attention (${ours}) takes ${forward} the time of ${theirs} forward, and ${backward} backward.`;
  });
}

/** `**0.91×** to **1.10×**, more in 2 of 40 cells,` */
function rangeInWords(ratios: readonly number[]): string {
  const slower = ratios.filter((ratio) => ratio > 1).length;
  const ends = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => `**${formatRatio(ratio)}**`);
  return `${ends.join(' to ')} (more than 1 in ${slower} of ${ratios.length} cells)`;
}

/** Why cells have nothing of PyTorch. */
export function torchNotes(cells: Cells): Block[] {
  const asked = cells.map(({ name, result }) => ({ name, title: 'PyTorch', peer: result?.peer }));
  return peerFailures(asked).map((text) => ({ kind: 'note', tone: 'warning', text }));
}
