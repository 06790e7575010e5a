import { z } from 'zod';
import { shapeParameters, count } from '../../attention/shape.ts';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { parameter } from '../../parameters/parameter.ts';
import { sweepOf, type ValuesOf } from '../../parameters/sweep.ts';
import { flashSettingParameters } from '../flash/parameters.ts';

/** A forward pass of flash attention by tiles of these sizes. */
export const tileParameters = {
  ...shapeParameters,
  tileQueries: parameter(count, { title: 'Queries', words: (queries) => `${queries} queries` }),
  tileKeys: parameter(count, { title: 'Keys', words: (keys) => `${keys} keys` }),
};
export const tileCell = cellSchema(tileParameters);
export type TileCell = z.infer<typeof tileCell>;

const { warmupMs, repeatMs, seed } = flashSettingParameters;
const tileSettings = { warmupMs, repeatMs, seed };
export type TileSettings = ValuesOf<typeof tileSettings>;

export const tileSweep = sweepOf({
  cell: tileParameters,
  settings: tileSettings,
  nested: ['dtype', 'mask', 'batch', 'heads', 'sequence', 'headDimension', 'tileQueries', 'tileKeys'],
});

/** What is attended to, where the command line names nothing: on the CPU what a laptop does in a minute. */
export const tileDefaults = {
  cuda: { headDimension: [64, 128], sequence: [16384] },
  cpu: { headDimension: [64], sequence: [512] },
} as const;

export const tileResult = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    /** Milliseconds, one sample a call. */
    samplesMs: z.array(z.number()).min(1),
    /** What a block of the kernel takes; null on the CPU, where tiles are made of tensor ops. */
    kernel: z
      .object({
        threads: z.number(),
        sharedBytes: z.number(),
        registersPerThread: z.number(),
        localBytesPerThread: z.number(),
      })
      .nullable(),
  }),
  /** The device has no room for the tile. */
  z.object({ status: z.literal('does-not-fit'), reason: z.string() }),
]);
export type TileResult = z.infer<typeof tileResult>;
