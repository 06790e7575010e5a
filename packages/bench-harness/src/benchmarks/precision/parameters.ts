import { z } from 'zod';
import { executions } from '../../execution/kinds.ts';
import { divergingNumber } from '../../measuring/statistics.ts';
import { cellSchema, combinations } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import {
  e2eCell,
  e2eDtypes,
  expandCells,
  stepParameters,
  stepSettings,
  stepSweepOf,
} from '../e2e/parameters.ts';
import { e2eResult } from '../e2e/result.ts';

export const lowDtypes = ['float16', 'bfloat16'] as const;
export type LowDType = (typeof lowDtypes)[number];

/** The parts of the study of mixed precision. */
export const studies = ['accumulation', 'dtypes', 'norms', 'accuracy', 'loss', 'speed'] as const;

export const precisionSettings = {
  ...stepSettings,
  peer: parameter(peerSetting),
  lossSteps: parameter(z.int().positive(), {
    flag: { default: '200', describe: 'Steps of the loss curves' },
  }),
};
export type PrecisionSettings = ValuesOf<typeof precisionSettings>;

/** The parameters of a loss curve. */
export const lossParameters = {
  dtype: parameter(z.enum(e2eDtypes)),
  execution: parameter(z.enum(executions).default('eager'), { column: 'swept', usual: 'eager' }),
};

/** The mode of a cell of accuracy is that of one loss and its gradients. */
export const precisionCell = z.discriminatedUnion('study', [
  z.object({ study: z.literal('accumulation') }),
  z.object({ study: z.literal('dtypes'), dtype: z.enum(lowDtypes) }),
  z.object({ study: z.literal('norms'), dtype: z.enum(lowDtypes) }),
  e2eCell.extend({ study: z.literal('accuracy'), dtype: z.enum(lowDtypes) }),
  cellSchema(lossParameters).extend({ study: z.literal('loss') }),
  e2eCell.extend({ study: z.literal('speed') }),
]);
export type PrecisionCell = z.infer<typeof precisionCell>;
export type LossCell = Extract<PrecisionCell, { study: 'loss' }>;
export type AccuracyCell = Extract<PrecisionCell, { study: 'accuracy' }>;

/** The tensors of the toy model whose dtypes are read, in the order of the table. */
export const toyTensors = ['parameters', 'first layer', 'layerNorm', 'logits', 'loss', 'gradients'] as const;
export type ToyDtypes = Record<(typeof toyTensors)[number], string>;

const toyDtypes = z.record(z.enum(toyTensors), z.string());

/** What is calculated of a norm; the ops of norms calculate their statistics in float32. */
export const normParts = ['squares', 'statistics', 'output', 'output, statistics in float32'] as const;
const normError = z.object({
  norm: z.enum(['LayerNorm', 'RMSNorm']),
  part: z.enum(normParts),
  /** Mean and standard deviation of the inputs. */
  magnitude: z.number(),
  /** Relative to float64; NaN where a value overflows. */
  offBy: divergingNumber,
});
export type NormError = z.infer<typeof normError>;

export const precisionResult = z.discriminatedUnion('study', [
  z.object({
    study: z.literal('accumulation'),
    sums: z.array(z.object({ device: z.string(), experiment: z.string(), sum: z.number() })),
  }),
  z.object({ study: z.literal('dtypes'), ours: toyDtypes, torch: toyDtypes.nullable() }),
  z.object({ study: z.literal('norms'), errors: z.array(normError) }),
  z.object({
    study: z.literal('accuracy'),
    torch: z.string(),
    /** |loss - exact loss| / |exact loss|, and ‖g - exact g‖ / ‖exact g‖ over all gradients; exact is float64. */
    ours: z.object({ loss: divergingNumber, gradients: divergingNumber }),
    theirs: z.object({ loss: divergingNumber, gradients: divergingNumber }),
    /** The parameter with the largest ratio of our gradient's error to PyTorch's, and that ratio. */
    worst: z.object({ parameter: z.string(), ratio: divergingNumber }),
  }),
  z.object({
    study: z.literal('loss'),
    losses: z.array(divergingNumber),
    /** Steps that the loss scaling left out. */
    skipped: z.int(),
  }),
  e2eResult.extend({ study: z.literal('speed') }),
]);
export type PrecisionResult = z.infer<typeof precisionResult>;
export type ResultOf<S extends PrecisionResult['study']> = Extract<PrecisionResult, { study: S }>;

const sweep = stepSweepOf(precisionSettings, { study: parameter(z.enum(studies)) });
export const precisionSweep = {
  ...sweep,
  cell: precisionCell,
  cellParameters: stepParameters,
  expand: expandPrecisionCells,
};

/** All cells, study by study; accuracy is measured against PyTorch, so there is none without it. */
function expandPrecisionCells(parameters: z.output<typeof sweep.parameters>): PrecisionCell[] {
  const { dtype, execution, peer, study: asked } = parameters;
  const low = dtype.filter((each) => each !== 'float32');
  const accuracy = () =>
    expandCells({ ...parameters, dtype: low, mode: ['forward-backward'] }).map(
      (cell) => ({ ...cell, study: 'accuracy' }) as AccuracyCell,
    );
  const cells: Record<(typeof studies)[number], () => PrecisionCell[]> = {
    accumulation: () => [{ study: 'accumulation' }],
    dtypes: () => low.map((each) => ({ study: 'dtypes', dtype: each })),
    norms: () => low.map((each) => ({ study: 'norms', dtype: each })),
    accuracy: () => (peer === null ? [] : accuracy()),
    loss: () => combinations({ study: ['loss' as const], dtype, execution }),
    speed: () => expandCells(parameters).map((cell) => ({ ...cell, study: 'speed' })),
  };
  return studies.filter((study) => asked.includes(study)).flatMap((study) => cells[study]());
}
