import type { InferredOptionTypes } from 'yargs';
import type { Flags } from '../command.ts';
import { parseWholeNumber } from '../option-values.ts';
import { e2eDtypes, modes } from '../../benchmarks/e2e/parameters.ts';
import { modelAttentions, peerAttentions } from '../../attention/kinds.ts';
import { executions, peerExecutions } from '../../execution/kinds.ts';
import { choicesOf, dtypeChoices, peerChoice } from './choices.ts';
import { deviceFlag } from './device-flag.ts';
import { modelFlags, sweptFlags } from './model-flags.ts';
import { sweepFlags } from './sweep-flags.ts';

export const e2eFlags = {
  ...modelFlags,
  ...sweptFlags,
  mode: {
    ...choicesOf('mode', modes),
    default: modes.join(','),
    describe: 'What a step does',
  },
  dtype: {
    ...dtypeChoices(e2eDtypes),
    default: 'float32',
    describe: 'Precision of the arithmetic',
  },
  attention: {
    ...choicesOf('attention', modelAttentions),
    default: 'plain',
    describe: 'Attention of the model: in separate ops, or by the kernels of @roofline/flash-attn',
  },
  execution: {
    ...choicesOf('execution', executions),
    default: 'eager',
    describe:
      'Run steps op by op, or as compiled programs, autotuned with the algorithm of each product timed',
  },
  warmup: {
    type: 'string',
    default: '5',
    describe: 'Steps before those that count',
    coerce: parseWholeNumber('warmup', 0),
  },
  steps: {
    type: 'string',
    default: '10',
    describe: 'Steps that count',
    coerce: parseWholeNumber('steps', 1),
  },
  ...deviceFlag,
  seed: {
    type: 'string',
    default: '0',
    describe: 'Seed of weights and tokens',
    coerce: parseWholeNumber('seed', 0),
  },
  peer: {
    ...peerChoice,
    describe: 'Run the same work in PyTorch in turn with ours (Python by ROOFLINE_PYTHON)',
  },
  'peer-attention': {
    ...choicesOf('peer-attention', peerAttentions),
    describe: "Attention of PyTorch's model; several are contrasted. plain if not given",
  },
  'peer-execution': {
    ...choicesOf('peer-execution', peerExecutions),
    describe:
      "How PyTorch runs, eager or by torch.compile's modes; several are contrasted. eager if not given",
  },
  ...sweepFlags,
} as const satisfies Flags;

export type E2eArguments = InferredOptionTypes<typeof e2eFlags>;
