import type { InferredOptionTypes } from 'yargs';
import { jsonFlag, type Flags } from '../command.ts';
import { parsePath, parsePositiveNumber } from '../option-values.ts';
import { choiceOf } from './choices.ts';
import { EXIT } from '../../errors.ts';
import type { CellRecord } from '../../records/record.ts';

/** Whether rows that ran out of memory count as an answer, have an exit code of their own, or are failures. */
const outOfMemoryPolicies = ['ok', 'report', 'fail'] as const;
export type OutOfMemoryPolicy = (typeof outOfMemoryPolicies)[number];

/** What every benchmark takes: where records go, and what becomes of cells that go wrong. */
export const sweepFlags = {
  out: {
    type: 'string',
    describe: 'Folder of the records; the same one resumes a sweep',
    defaultDescription: 'results/BENCHMARK-TIME',
    coerce: parsePath('out'),
  },
  'force-new': {
    type: 'boolean',
    default: false,
    describe: 'Start a new file in --out next to results of other settings',
  },
  timeout: {
    type: 'string',
    describe: 'Seconds after which a cell is given up',
    coerce: parsePositiveNumber('timeout'),
  },
  oom: {
    ...choiceOf('oom', outOfMemoryPolicies),
    default: 'report',
    describe: 'Exit code when cells ran out of memory: ok 0, report 3, fail 1',
  },
  ...jsonFlag,
} as const satisfies Flags;

/** Where the records of a sweep go, and what becomes of cells that go wrong. */
export interface SweepOptions {
  readonly out: string;
  readonly forceNew: boolean;
  readonly timeoutMs: number | null;
  readonly outOfMemory: OutOfMemoryPolicy;
  readonly json: boolean;
}

/** The options of a run that the flags give; without --out a folder named after `benchmark` and the time. */
export function sweepOptions(args: InferredOptionTypes<typeof sweepFlags>, benchmark: string): SweepOptions {
  return {
    out: args.out ?? `results/${benchmark}-${timestamp()}`,
    forceNew: args['force-new'],
    timeoutMs: args.timeout === undefined ? null : Math.min(args.timeout * 1000, Number.MAX_VALUE),
    outOfMemory: args.oom,
    json: args.json,
  };
}

/** `20260102-030405`, in local time. */
function timestamp(): string {
  const now = new Date();
  const day = [now.getFullYear(), now.getMonth() + 1, now.getDate()];
  const time = [now.getHours(), now.getMinutes(), now.getSeconds()];
  const digits = (numbers: readonly number[]) =>
    numbers.map((each) => String(each).padStart(2, '0')).join('');
  return `${digits(day)}-${digits(time)}`;
}

/** 0 all measured, 1 a failure, 3 finished with rows that ran out of memory (0 or 1 by policy). */
export function exitCodeOf(records: readonly CellRecord[], policy: OutOfMemoryPolicy): number {
  if (records.some(({ status }) => status === 'failed' || status === 'timeout')) return EXIT.failure;
  if (records.every(({ status }) => status === 'ok')) return EXIT.ok;
  return { ok: EXIT.ok, report: EXIT.outOfMemory, fail: EXIT.failure }[policy];
}
