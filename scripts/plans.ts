// The machines that `roofline plan` knows, condensed from records, and the plans of docs/results.
import { join, resolve } from 'node:path';
import { readResults } from '../packages/bench-harness/src/index.ts';
import type { MachineName } from '../packages/bench-harness/src/plan/kinds.ts';
import type { Machine } from '../packages/bench-harness/src/plan/machine.ts';
import { machineOf } from '../packages/bench-harness/src/plan/machine-of-records.ts';
import { planOf, type PlanRequest } from '../packages/bench-harness/src/plan/plan.ts';
import { planReport } from '../packages/bench-harness/src/plan/report/plan-report.ts';
import type { Report } from '../packages/reports/src/index.ts';
import { presets } from '../packages/transformer/src/index.ts';

const results = resolve(import.meta.dirname, '../docs/results');

/** The folders of the records that each machine is condensed from. */
const foldersOf: Readonly<Record<MachineName, readonly string[]>> = {
  h200: [
    ...['h200-float32', 'h200-bfloat16', 'h200-large', 'h200-steps-flash', 'h200-steps-plain'],
    ...['h200-compiled-float32', 'h200-compiled-float32-2.7b', 'h200-compiled-steps', 'h200-compiled-2.7b'],
    ...['h200-compiled-peer', 'h200-peers', 'h200-flash', 'h200-flash-float32'],
    ...['h200x2-allreduce', 'h200x2-allgather-reducescatter', 'h200x2-ddp'],
    'h200x2-fsdp',
  ],
  cpu: ['cpu-float32', 'cpu-allreduce', 'cpu-ddp'],
};

export function machineOfFolders(name: MachineName): Machine {
  return machineOf(foldersOf[name].flatMap((folder) => readResults(join(results, folder))));
}

/** The file of a machine: JSON, each measurement in a line of its own. */
export function machineText(machine: Machine): string {
  const members = Object.entries(machine).map(([key, value]) => {
    if (!Array.isArray(value)) return `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`;
    const lines = value.map((each) => `    ${JSON.stringify(each)}`);
    return `  ${JSON.stringify(key)}: [\n${lines.join(',\n')}\n  ]`;
  });
  return `{\n${members.join(',\n')}\n}\n`;
}

const step = { dtype: 'bfloat16', attention: 'flash', execution: 'compiled', recompute: 'none' } as const;

/** The pages of plans, by their folders. */
export const plans: Readonly<
  Record<string, { readonly machine: MachineName; readonly request: PlanRequest }>
> = {
  'plan-8b': {
    machine: 'h200',
    request: {
      ...{ ...step, model: { size: '8b', shape: presets['8b'] }, context: 8192, batch: 1 },
      ...{ gpus: 64, perNode: 8, linkBytesPerSecond: 50e9 },
    },
  },
};

export function committedPlan(name: string): Report {
  const { machine: machineName, request } = plans[name]!;
  const machine = machineOfFolders(machineName);
  return planReport(planOf(machine, request), machine.measuredAt);
}
