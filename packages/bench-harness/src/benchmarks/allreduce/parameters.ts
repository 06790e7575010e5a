import { z } from 'zod';
import { cellSchema } from '../../parameters/cell-schema.ts';
import { dtypeSynonyms } from '../../parameters/dtype-synonyms.ts';
import { parameter } from '../../parameters/parameter.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { collectiveDTypes, collectiveOps } from './operations.ts';
import { sizeInWords } from './sizes.ts';

/** The numbers of ranks that are usual. */
export const worldSizes = [2, 4, 6];

export const backends = ['gloo', 'nccl'] as const;
export type CollectiveBackend = (typeof backends)[number];

export const collectiveParameters = {
  op: parameter(z.enum(collectiveOps), {
    flag: { default: 'allreduce', describe: 'Collectives to time' },
  }),
  backend: parameter(z.enum(backends), {
    emphasis: 'strong',
    flag: { describe: 'What moves the data; nccl if not given where there are several GPUs, else gloo' },
  }),
  ranks: parameter(z.int().min(1), {
    words: (ranks) => (ranks === 1 ? '1 rank' : `${ranks} ranks`),
    flag: {
      name: 'nproc',
      describe: `Ranks; those of ${worldSizes.join()} for which there are GPUs or cores if not given`,
    },
  }),
  /** Of all pieces together, as in nccl-tests. */
  bytes: parameter(z.int().positive(), {
    ...{ title: 'Size', words: sizeInWords },
    shown: { key: 'size', text: sizeInWords },
  }),
  dtype: parameter(z.enum(collectiveDTypes), {
    flag: { default: 'float32', describe: 'Of the elements', synonyms: dtypeSynonyms },
  }),
};
export const collectiveCell = cellSchema(collectiveParameters);
export type CollectiveCell = z.infer<typeof collectiveCell>;

/** What all cells share. */
export const collectiveSettingParameters = {
  warmup: parameter(z.int().nonnegative(), {
    flag: { describe: 'Calls of a turn before those that count; 5 if not given, of Gloo 1' },
  }),
  iterations: parameter(z.int().positive(), {
    flag: { describe: 'Calls of a turn that count; 20 if not given, of Gloo 4' },
  }),
  rounds: parameter(z.int().positive(), {
    flag: { default: '5', describe: 'Turns that sides and placements take' },
  }),
  peer: parameter(peerSetting),
};
const collectiveSettings = cellSchema(collectiveSettingParameters);
export type CollectiveSettings = z.infer<typeof collectiveSettings>;
