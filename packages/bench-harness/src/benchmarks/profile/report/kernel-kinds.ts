import type { Plot } from '@roofline/reports';
import { plotsOf } from '../../../report/series.ts';
import type { Profiled } from '../interpret.ts';
import { isMatrixProduct, phaseOf, phasesOf, type KernelSpan, type TimedKernel } from '../kernel-spans.ts';
import { isPeerProduct, type PeerKernel } from '../peer/peer-kernels.ts';

/** What kernels do, roughly; the first that fits. */
const kinds = [
  'matrix products',
  'optimizer',
  'softmax and loss',
  'norms and reductions',
  'casts and copies',
  'element-wise and other',
] as const;
type Kind = (typeof kinds)[number];

/** By the op that queued it. */
function ownKind(span: KernelSpan): Kind {
  if (isMatrixProduct(span)) return 'matrix products';
  const op = span.op?.name ?? '';
  if (/^(adamw|sgd|clip)/i.test(op)) return 'optimizer';
  if (/softmax|crossEntropy|attention/i.test(op)) return 'softmax and loss';
  if (/norm|^(sum|mean|max|min)$/i.test(op)) return 'norms and reductions';
  if (span.kind !== 'kernel' || /^(cast|copy|contiguous|fill)/.test(op)) return 'casts and copies';
  return 'element-wise and other';
}

/** By its name, which is all that PyTorch's profiler gives. */
function peerKind(kernel: PeerKernel): Kind {
  if (isPeerProduct(kernel)) return 'matrix products';
  const { name } = kernel;
  if (/multi_tensor_apply|adam|addcdiv/i.test(name)) return 'optimizer';
  if (/softmax|nll|attention/i.test(name)) return 'softmax and loss';
  if (/reduce_kernel|norm|^aten::(sum|mean|amax)$/i.test(name)) return 'norms and reductions';
  if (/copy|memcpy|memset|^aten::(fill_|zero_|_to_copy|cat)$/i.test(name)) return 'casts and copies';
  return 'element-wise and other';
}

/** The kernel time of a step by phase and kind, as stacked bars; PyTorch's next to ours where it ran. */
export function kernelKindsPlot({ spans, result, peer }: Profiled, id: string): Plot[] {
  if (spans.length === 0) return [];
  const bars: { x: string; time: ReadonlyMap<Kind, number> }[] = [];
  for (const phase of phasesOf([...spans, ...(peer?.kernels ?? [])])) {
    const ours = spans.filter((span) => phaseOf(span) === phase);
    bars.push({ x: phase, time: timeByKind(ours, ownKind, result.steps.length) });
    if (peer === null) continue;
    const theirs = peer.kernels.filter((kernel) => phaseOf(kernel) === phase);
    bars.push({ x: `${phase}, PyTorch`, time: timeByKind(theirs, peerKind, peer.profile.steps.length) });
  }
  const shown = bars.filter(({ time }) => time.size > 0);
  const present = kinds.filter((kind) => shown.some(({ time }) => time.has(kind)));
  return plotsOf({
    id,
    title: 'Kernel time by phase and kind',
    caption:
      'Of a step, whatever the selection. Ours are sorted by the op that queued them' +
      (peer === null ? '.' : ", PyTorch's by their names, which is all that its profiler gives."),
    x: { label: 'Phase', scale: 'category' },
    y: { label: 'Kernel time', unit: 'ms', scale: 'linear' },
    marks: 'bar',
    stacked: true,
    series: present.map((kind) => ({
      name: kind,
      points: shown.map(({ x, time }) => ({ x, y: time.get(kind) ?? 0 })),
    })),
  });
}

/** Milliseconds of a step. */
function timeByKind<Kernel extends TimedKernel>(
  kernels: readonly Kernel[],
  kindOf: (kernel: Kernel) => Kind,
  steps: number,
): Map<Kind, number> {
  const times = new Map<Kind, number>();
  for (const kernel of kernels) {
    const kind = kindOf(kernel);
    times.set(kind, (times.get(kind) ?? 0) + kernel.durationUs / 1000 / steps);
  }
  return times;
}
