import { defineCommand, type Flags } from '../cli/command.ts';
import { parseChoices, parseWholeNumber } from '../cli/option-values.ts';
import { eagerOpNames } from '../overhead/parameters.ts';
import { deviceFlag } from './device-flag.ts';
import { sweepFlags, sweepOptions } from './sweep-flags.ts';

const overheadFlags = {
  op: {
    type: 'string',
    default: eagerOpNames.join(','),
    describe: 'Ops to measure',
    coerce: parseChoices('op', eagerOpNames),
    completions: () => eagerOpNames,
  },
  calls: {
    type: 'string',
    default: '500',
    describe: 'Calls of one repeat',
    coerce: parseWholeNumber('calls', 1),
  },
  repeats: {
    type: 'string',
    default: '20',
    describe: 'Repeats that the median is of',
    coerce: parseWholeNumber('repeats', 1),
  },
  ...deviceFlag,
  ...sweepFlags,
} as const satisfies Flags;

export const overheadCommand = defineCommand({
  name: 'overhead',
  summary: 'Host time of an eager op; on a GPU also the first op with a cold and a warm kernel cache',
  flags: overheadFlags,
  examples: [
    ['roofline overhead', 'all ops on the best device here'],
    ['roofline overhead --op add --device cuda --json', 'one op, for other programs'],
  ],
  async run(args) {
    const { runBenchmark } = await import('../cli/run-benchmark.ts');
    const { overheadBenchmark } = await import('../overhead/benchmark.ts');
    const { op: ops, calls, repeats, device } = args;
    const { exitCode } = await runBenchmark(overheadBenchmark, {
      parameters: () => ({ ops, calls, repeats }),
      device,
      dtypes: [],
      ...sweepOptions(args, 'overhead'),
    });
    return exitCode;
  },
});
