import { nearestOf } from '@roofline/cuda/host';
import type { Flags } from '../command.ts';
import { UsageError } from '../../errors.ts';
import { single } from '../option-values.ts';

const examples = ['auto', 'cpu', 'cuda', 'cuda:0', 'cuda:1'];

export const deviceFlag = {
  device: {
    type: 'string',
    default: 'auto',
    describe: 'auto (a GPU if usable, else the CPU), cpu, cuda or cuda:N',
    coerce: parseDevice,
    completions: () => examples,
  },
} as const satisfies Flags;

/** Of commands that start ranks. */
export const ranksDeviceFlag = {
  device: {
    ...deviceFlag.device,
    describe: 'auto (GPUs if there are several, one for each rank; else the CPU), cpu or cuda',
    completions: () => ['auto', 'cpu', 'cuda'],
  },
} as const satisfies Flags;

/** `gpu` and `gpu:1` are understood as `cuda` and `cuda:1`. */
function parseDevice(words: string | readonly string[]): string {
  const given = single('device', words);
  const device = given.replace(/^gpu\b/, 'cuda');
  if (/^(auto|cpu|cuda(:\d+)?)$/.test(device)) return device;
  const suggestion = nearestOf(given, examples);
  throw new UsageError(
    `Unknown device '${given}'.${suggestion ? ` Did you mean ${suggestion}?` : ''} ` +
      'Choices: auto, cpu, cuda, cuda:N.',
  );
}
