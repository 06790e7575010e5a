import { ratioLead, type Lead } from '../../../report/lead.ts';
import { measuredOf } from '../../../report/measurement.ts';
import { stepParameters } from '../../e2e/parameters.ts';
import type { CompileMeasurement } from './tables.ts';

const named = ['size', 'context', 'batch', 'mode', 'dtype', 'attention', 'execution'];

/** What fusing leaves of the kernels; on the CPU, whose nodes ONNX Runtime fuses, what the step takes to launch. */
export function lead(cells: readonly CompileMeasurement[]): Lead | null {
  const measured = measuredOf(cells);
  const common = { value: 'number', parameters: stepParameters, named } as const;
  const fused = measured.filter(({ result: { nodes, nodesBefore } }) => (nodes ?? 0) < (nodesBefore ?? 0));
  if (fused.length > 0) {
    return ratioLead(
      {
        ...{
          ...common,
          title: 'Kernels of a step, after vs before fusing',
          ours: 'After',
          theirs: 'Before',
        },
        caption: 'Kernels, copies and fills of the graph, and those with every fused op on its own.',
      },
      fused.map(({ cell, result: { nodes, nodesBefore } }) => ({ cell, ours: nodes, theirs: nodesBefore })),
      (range) => `A compiled step runs ${range} of the kernels of its ops`,
    );
  }
  return ratioLead(
    {
      ...{ ...common, title: 'Launches of a step vs its calls', ours: 'Launches', theirs: 'Calls' },
      caption: 'ONNX graphs and single ops that a step launches, and the ops that it calls.',
    },
    measured.map(({ cell, result: { launches, calls } }) => ({ cell, ours: launches, theirs: calls })),
    (range) => `A compiled step takes ${range} as many launches as it has calls`,
  );
}
