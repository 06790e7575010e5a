import { allocationTable } from '../allocations/table.ts';
import type { Block, Note, Table } from '../model.ts';
import { plotTable } from '../plot/table.ts';
import { ratioTable } from '../ratios/table.ts';
import { rooflineTable } from '../roofline/table.ts';
import { timelineTable } from '../timeline/table.ts';

/** What represents a block where only tables can be shown. */
export function blockTable(block: Exclude<Block, Note>): Table {
  if (block.kind === 'plot') return plotTable(block);
  if (block.kind === 'roofline') return rooflineTable(block);
  if (block.kind === 'ratios') return ratioTable(block);
  if (block.kind === 'timeline') return timelineTable(block);
  return block.kind === 'allocations' ? allocationTable(block) : block;
}
