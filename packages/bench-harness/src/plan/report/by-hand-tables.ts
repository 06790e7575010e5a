import { formatBytes, formatNumber, type Table } from '@roofline/reports';
import { inequalities, rings, type ByHandSetting } from '../by-hand.ts';
import { elementBytes } from '../setting.ts';
import type { Plan } from '../plan.ts';

/** What a plan's machine and step come to on paper; null where there is one device, which sends nothing. */
function byHandSetting({ request, setting, planner: { machine, links } }: Plan): ByHandSetting | null {
  const inside = links.inside.at(-1)?.busBytesPerSecond;
  const isOutside = request.gpus > request.perNode;
  const linkBytesPerSecond = isOutside ? links.outsideBytesPerSecond : inside;
  const flopsPerSecond = machine.ceilings.matmulFlopsPerSecond[setting.dtype];
  if (request.gpus === 1 || !linkBytesPerSecond || !flopsPerSecond) return null;
  const tokens = setting.batch * setting.context * request.gpus;
  return { setting, tokens, flopsPerSecond, linkBytesPerSecond };
}

/** The largest N by inequality, and the alternate ring next to the usual one. */
export function byHandTables(plan: Plan): Table[] {
  const asked = byHandSetting(plan);
  if (asked === null) return [];
  const { setting, tokens, flopsPerSecond, linkBytesPerSecond } = asked;
  const { gpus } = plan.request;
  const { bytes, ringMs, alternateMs } = rings(asked, gpus);
  const layoutColumn = { key: 'how', label: 'Divided', kind: 'text', emphasis: 'strong' } as const;
  return [
    {
      ...{ kind: 'table', id: 'by-hand', title: 'Largest N by inequality' },
      caption:
        `Without latencies, at the ceilings: B = ${formatNumber(tokens)} tokens of the step, F = ${formatNumber(setting.shape.feedForwardDimension)}, ` +
        `C = ${formatNumber(flopsPerSecond / 1e12, 3)} TFLOP/s, W = ${formatNumber(linkBytesPerSecond / 1e9, 3)} GB/s of each GPU, ` +
        `e = ${elementBytes(setting.dtype)} bytes a number.`,
      columns: [
        layoutColumn,
        { key: 'inequality', label: 'Computation is the bound while', kind: 'text' },
        { key: 'mostGpus', label: 'Largest N', kind: 'number' },
      ],
      rows: inequalities(asked).map((each) => ({ ...each })),
    },
    {
      ...{ kind: 'table', id: 'rings', title: 'All-reduce by two rings' },
      caption: `Of S = ${formatBytes(bytes)} of gradients on N = ${formatNumber(gpus)} GPUs, without latencies.`,
      columns: [
        layoutColumn,
        { key: 'formula', label: 'Time', kind: 'text' },
        { key: 'timeMs', label: 'Here', kind: 'duration', unit: 'ms' },
      ],
      rows: [
        {
          how: 'ring of pieces: scattered and reduced, then gathered',
          formula: '2 (N - 1) S / N W',
          timeMs: ringMs,
        },
        { how: 'alternate ring: whole tensors passed on', formula: '(N - 1) S / W', timeMs: alternateMs },
      ],
    },
  ];
}
