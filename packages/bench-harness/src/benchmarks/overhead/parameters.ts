import { z } from 'zod';
import { namedModel } from '../../model/shape.ts';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter, withFlag } from '../../parameters/parameter.ts';
import { sweepOf, type ValuesOf } from '../../parameters/sweep.ts';
import { e2eCell, expandCells, stepParameters, stepSettings } from '../e2e/parameters.ts';

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

const { warmup, seed } = stepSettings;
export const overheadSettings = {
  /** As many as the device's queue takes without making the host wait. */
  calls: parameter(z.int().positive(), {
    flag: { default: '500', describe: 'Calls of one repeat of an op' },
  }),
  repeats: parameter(z.int().positive(), {
    flag: {
      ...{
        default: '20',
        describe: 'Repeats of an op, and rounds of the instruments, that the median is taken over',
      },
    },
  }),
  warmup: withFlag(warmup, {
    ...{ default: '3', describe: 'Rounds of the instruments before those that count' },
  }),
  seed,
};
export type OverheadSettings = ValuesOf<typeof overheadSettings>;

const { context, batch, dtype } = stepParameters;
const sweep = sweepOf({
  cell: {
    ...{ ...opParameters, study: parameter(z.enum(overheadStudies)) },
    ...{ model: parameter(namedModel), context, batch, dtype },
  },
  settings: overheadSettings,
});
export const overheadSweep = {
  ...sweep,
  cell: overheadCell,
  cellParameters: stepParameters,
  expand: expandOverheadCells,
};

function expandOverheadCells(parameters: z.output<typeof sweep.parameters>): OverheadCell[] {
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
