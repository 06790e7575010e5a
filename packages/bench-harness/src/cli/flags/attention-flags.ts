import type { Flags } from '../command.ts';
import { parseWholeNumber, parseWholeNumbers } from '../option-values.ts';
import { attentionKinds } from '../../attention/kinds.ts';
import { dtypes } from '../../measuring/ceilings.ts';
import { choicesOf, dtypeChoices } from './choices.ts';
import { deviceFlag } from './device-flag.ts';
import { sweepFlags } from './sweep-flags.ts';

const numbers = (flag: string, describe: string) =>
  ({ type: 'string', describe, coerce: parseWholeNumbers(flag, 1) }) as const;

/** What is swept of attention alone. What is not given depends on the device, so the descriptions say it. */
export const attentionFlags = {
  attention: {
    ...choicesOf('attention', attentionKinds),
    default: 'plain,flash',
    describe: 'In separate ops, by the kernels of @roofline/flash-attn, or its algorithm in ops',
  },
  batch: numbers('batch', 'Sequences of a batch'),
  'head-dim': numbers('head-dim', 'Head dimension'),
  sequence: numbers('sequence', 'Queries, and as many keys'),
  dtype: {
    ...dtypeChoices(dtypes),
    default: 'float32',
    describe: 'Of operands and results; no autocast',
  },
  ...deviceFlag,
  seed: {
    type: 'string',
    default: '0',
    describe: 'Seed of the operands',
    coerce: parseWholeNumber('seed', 0),
  },
  ...sweepFlags,
} as const satisfies Flags;
