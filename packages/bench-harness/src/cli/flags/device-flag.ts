import { nearestOf } from '@roofline/tensor-core/nearest';
import type { Flags } from '../command.ts';
import { UsageError } from '../../errors.ts';

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

export function parseDevice(given: string): string {
  if (/^(auto|cpu|cuda(:\d+)?)$/.test(given)) return given;
  const suggestion = nearestOf(given, examples);
  throw new UsageError(
    `Unknown device '${given}'.${suggestion ? ` Did you mean ${suggestion}?` : ''} ` +
      'Choices: auto, cpu, cuda, cuda:N.',
  );
}
