import { z } from 'zod';
import { cellSchema, sweepSchemas } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { e2eCell, e2eParameters, expandCells } from '../e2e/parameters.ts';

/** What is measured: the host time of eager ops, and what a step pays for being profiled or recorded. */
export const overheadStudies = ['ops', 'instruments'] as const;

/** The eager ops whose host time is measured. */
export const eagerOpNames = ['add', 'mul-with-tape', 'softmax', 'matmul'] as const;
export type EagerOpName = (typeof eagerOpNames)[number];

/** It names no study: records from before there was a second one are read and compared as well. */
export const opParameters = {
  op: parameter(z.enum(eagerOpNames), {
    flag: { describe: 'Ops to measure', default: eagerOpNames.join(',') },
  }),
};
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
  .pick({ model: true, context: true, batch: true, dtype: true, warmup: true, seed: true })
  .extend({
    study: z.array(z.enum(overheadStudies)).min(1),
    ...sweepSchemas(opParameters),
    /** Calls of one sample: as many as the device's queue takes without making the host wait. */
    calls: z.int().positive(),
    /** Samples of an op, and rounds of the instruments; `warmup` rounds go before those. */
    repeats: z.int().positive(),
  });
export type OverheadParameters = z.infer<typeof overheadParameters>;
export type OverheadSettings = Pick<OverheadParameters, 'calls' | 'repeats' | 'warmup' | 'seed'>;

export function expandOverheadCells(parameters: OverheadParameters): OverheadCell[] {
  const { study, op } = parameters;
  const instrumented = expandCells({
    ...parameters,
    ...{ mode: ['train-step'], attention: ['plain'], execution: ['eager'] },
  });
  return [
    ...(study.includes('ops') ? op.map((each) => ({ op: each })) : []),
    ...(study.includes('instruments')
      ? instrumented.map((cell) => ({ ...cell, study: 'instruments' as const }))
      : []),
  ];
}
