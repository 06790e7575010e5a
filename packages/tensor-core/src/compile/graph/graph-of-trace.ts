import type { GradientResult } from './gradient-results.ts';
import { withoutDeadCalls } from './liveness.ts';
import type { Operand, Graph } from './graph.ts';
import type { Trace } from '../trace/trace.ts';

/** The graph of `trace`, which has at least one op, that gives `results` and `gradientResults`. */
export function graphOf(
  name: string,
  trace: Trace,
  results: readonly Operand[],
  gradientResults: readonly GradientResult[],
): Graph {
  const { storages, written, calls } = trace;
  const isMade = (storage: number) => storages[storage]!.source.kind === 'made';
  const gradients = new Map(
    gradientResults.flatMap(({ leaf, operand }) =>
      operand && isMade(operand.storage) ? [[operand.storage, leaf] as const] : [],
    ),
  );
  const kept = new Set([...results.map(({ storage }) => storage).filter(isMade), ...gradients.keys()]);
  return {
    name,
    device: trace.device!,
    calls: withoutDeadCalls({ calls, storages, kept }),
    storages,
    kept,
    gradients,
    written,
    tracedCalls: calls.length,
    eagerPeakBytes: trace.peakBytes,
  };
}
