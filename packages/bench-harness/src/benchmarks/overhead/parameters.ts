import { z } from 'zod';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { e2eCell, e2eParameters, expandCells } from '../e2e/parameters.ts';

/** What is measured: the host time of eager ops, and what a step pays for being profiled or recorded. */
export const overheadStudies = ['ops', 'instruments'] as const;

/** The eager ops whose host time is measured. */
export const eagerOpNames = ['add', 'mul-with-tape', 'softmax', 'matmul'] as const;
export type EagerOpName = (typeof eagerOpNames)[number];

/** It names no study: records from before there was a second one are read and compared as well. */
export const opParameters = { op: parameter(z.enum(eagerOpNames)) };
const opCell = cellSchema(opParameters);
export type OpCell = z.infer<typeof opCell>;

/** One model, whose train steps run without instruments, profiled and recorded in turn. */
const instrumentCell = e2eCell.extend({ study: z.literal('instruments') });
export type InstrumentCell = z.infer<typeof instrumentCell>;

export const overheadCell = z.union([instrumentCell, opCell]);
export type OverheadCell = z.infer<typeof overheadCell>;

export function isInstrumentCell(cell: OverheadCell): cell is InstrumentCell {
  return 'study' in cell;
}

export const overheadParameters = e2eParameters
  .pick({ models: true, contexts: true, batches: true, dtypes: true, warmup: true, seed: true })
  .extend({
    studies: z.array(z.enum(overheadStudies)).min(1),
    ops: z.array(z.enum(eagerOpNames)).min(1),
    /** Calls of one sample: as many as the device's queue takes without making the host wait. */
    calls: z.int().positive(),
    /** Samples of an op, and rounds of the instruments; `warmup` rounds go before those. */
    repeats: z.int().positive(),
  });
export type OverheadParameters = z.infer<typeof overheadParameters>;
export type OverheadSettings = Pick<OverheadParameters, 'calls' | 'repeats' | 'warmup' | 'seed'>;

export function expandOverheadCells(parameters: OverheadParameters): OverheadCell[] {
  const { studies, ops, repeats } = parameters;
  const fixed = {
    modes: ['train-step' as const],
    attentions: ['plain' as const],
    ...{ peer: null, peerAttentions: ['plain' as const] },
  };
  const opCells = (): OpCell[] => ops.map((op) => ({ op }));
  const instrumentCells = (): InstrumentCell[] =>
    expandCells({ ...parameters, ...fixed, steps: repeats }).map((cell) => ({
      ...cell,
      study: 'instruments',
    }));
  return [
    ...(studies.includes('ops') ? opCells() : []),
    ...(studies.includes('instruments') ? instrumentCells() : []),
  ];
}
