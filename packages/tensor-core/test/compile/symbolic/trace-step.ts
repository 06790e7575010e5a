import type { CudaDevice } from '../../../src/kernel-api.ts';
import { withoutDeadCalls } from '../../../src/compile/graph/liveness.ts';
import type { Graph } from '../../../src/compile/graph/graph.ts';
import { Trace } from '../../../src/compile/trace/trace.ts';
import { traced } from '../../../src/compile/trace/traced.ts';
import { RandomSource } from '../../differential/programs/random-source.ts';
import type { StepProgram } from '../random-steps/step-program.ts';
import { type Trainer, World } from '../random-steps/world.ts';

/**
 * A random step as a graph for passes; null where eager code refuses it. Gradients stay in every third one, and in some
 * everything else that the step has made.
 */
export function traceStep(step: StepProgram, device: CudaDevice, trainers: readonly Trainer[]): Graph | null {
  const world = new World(step, device, trainers);
  const { given } = world.argumentsOf(0);
  const trace = new Trace([]);
  const run = () => {
    const results = world.run(given);
    const gradients = step.seed % 3 === 0 ? world.parameters.flatMap(({ grad }) => grad?.detach() ?? []) : [];
    return [...results, ...gradients];
  };
  let kept: Set<number>;
  try {
    const storages = traced(trace, run).map((x) => trace.operand(x).storage);
    kept = new Set(storages.filter((storage) => trace.storages[storage]!.source.kind === 'made'));
  } catch {
    return null;
  }
  const { storages, written, calls } = trace;
  const random = new RandomSource('kept', step.seed);
  const share = random.pick([0, 0, 0.2]);
  storages.forEach(({ source }, number) => {
    if (source.kind === 'made' && random.chance(share)) kept.add(number);
  });
  return {
    name: '',
    device,
    storages,
    written,
    calls: withoutDeadCalls({ calls, storages, kept }),
    kept,
    gradients: new Map(),
    tracedCalls: calls.length,
    eagerPeakBytes: 0,
  };
}
