import type { z } from 'zod';
import {
  device as openDevice,
  formatShape,
  type ExplainedCall,
  type CompileExplanation,
} from '@roofline/tensor-core';
import { canonicalJson } from '../../records/json.ts';
import { samplesOf, stepRunner } from '../../measuring/step-runner.ts';
import type { CellContext } from '../../runner/cell-task.ts';
import { createWorkload } from '../e2e/workload.ts';
import { measureCompileTimes } from './compile-times.ts';
import type { CompileCell, CompileSettings } from './parameters.ts';
import { compileResult, type CallGroup, type CompileResult } from './result.ts';

/** Compiles the step of one cell, reports what became of it, and times it. */
export async function measureCompile(
  cell: CompileCell,
  { settings, deviceLabel, progress }: CellContext<CompileSettings>,
): Promise<CompileResult> {
  const device = openDevice(deviceLabel as `cuda:${number}`);
  const isAsked = settings.coldAndWarm && deviceLabel !== 'cpu';
  // Before anything is on the device, so that the other processes have it to themselves.
  const compileTimes = isAsked ? await measureCompileTimes(cell, settings.seed, deviceLabel) : null;
  const workload = createWorkload(cell, device, settings.seed);
  workload.compile();
  const { call, compiled, compilation } = workload.program!;
  const run = stepRunner(progress, { warmup: 0, steps: settings.steps });
  const times = await run(settings.steps, () => {
    device.synchronize();
    const start = device.recordEvent();
    const calledMs = performance.now();
    call();
    const hostMs = performance.now() - calledMs;
    return { hostMs, deviceMs: device.recordEvent().elapsedMs(start) };
  });
  // The program that ran last: an optimizer's first step has one of its own.
  return { compilation, compileTimes, ...described(compiled.explain().at(-1)!), ...samplesOf(times) };
}

const explanation = compileResult.omit({
  ...{ compilation: true, compileTimes: true, deviceMs: true, hostMs: true },
});
type Described = z.infer<typeof explanation>;

/** What is kept of what `explain()` says. */
function described(program: CompileExplanation): Described {
  const all: Described = { ...program, table: groupCalls(program.table) };
  return explanation.parse(all);
}

/** Calls that are alike in all layers, in the order of the first of each. */
export function groupCalls(table: readonly ExplainedCall[]): CallGroup[] {
  const alike = table.map(({ op, members, range, outputs }) => ({
    ...{ op, members: [...members] },
    range: range.map((name) => name.replace(/\.\d+$/, '.*')).join(' > '),
    outputs: outputs.map(({ dtype, shape }) => `${dtype} ${formatShape(shape)}`).join(', '),
  }));
  const groups = Map.groupBy(table.keys(), (call) => canonicalJson(alike[call]!));
  return [...groups.values()].map((group) => {
    const nodes = group.map((call) => table[call]!.nodes);
    return { ...alike[group[0]!]!, calls: group.length, nodes: nodes.includes(null) ? null : sum(nodes) };
  });
}

function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, value) => total + value!, 0);
}
