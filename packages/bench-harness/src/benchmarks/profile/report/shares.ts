import {
  isMatrixProduct,
  phaseOf,
  phasesOf,
  totalUs,
  type KernelSpan,
  type TimedKernel,
} from '../kernel-spans.ts';
import { summarizeByName } from './summaries.ts';

const us = (value: number) => value / 1000;

/** For each phase, and for all of them, the time in matrix products against the rest, a step. */
export function matmulShares(
  spans: readonly KernelSpan[],
  steps: number,
): (MatmulShare & { phase: string })[] {
  const phases = byPhase(spans);
  const all = phases.length > 1 ? [['all', spans] as const] : [];
  return [...phases, ...all].map(([phase, group]) => ({
    phase,
    ...matmulShare(group, steps, isMatrixProduct),
  }));
}

function byPhase(spans: readonly KernelSpan[]): [phase: string, group: KernelSpan[]][] {
  return phasesOf(spans).map((phase) => [phase, spans.filter((span) => phaseOf(span) === phase)]);
}

export type MatmulShare = ReturnType<typeof matmulShare>;

/** Matrix products against the rest in some kernels of all steps, a step. */
export function matmulShare<Kernel extends TimedKernel>(
  kernels: readonly Kernel[],
  steps: number,
  isProduct: (kernel: Kernel) => boolean,
) {
  const products = totalUs(kernels.filter(isProduct));
  const total = totalUs(kernels);
  return {
    kernels: kernels.length / steps,
    kernelMs: us(total) / steps,
    matmulMs: us(products) / steps,
    restMs: us(total - products) / steps,
    matmulShare: total === 0 ? 0 : products / total,
  };
}

/** Softmax against the matrix products inside attention, in time and in FLOPs, by phase. */
export function attentionShares(spans: readonly KernelSpan[], steps: number) {
  const inRange = (span: KernelSpan, names: readonly string[]) =>
    span.ranges.some(({ name }) => names.includes(name));
  const flops = (group: readonly KernelSpan[]) => flopsOfOps(group) / steps;
  return byPhase(spans).flatMap(([phase, group]) => {
    const softmax = group.filter((span) => inRange(span, ['attention.softmax']));
    const products = group.filter(
      (span) => span.op?.isMatrixProduct && inRange(span, ['attention.scores', 'attention.values']),
    );
    if (softmax.length === 0 || products.length === 0) return [];
    return [
      {
        phase,
        softmaxMs: us(totalUs(softmax)) / steps,
        matmulMs: us(totalUs(products)) / steps,
        timeRatio: totalUs(softmax) / totalUs(products),
        softmaxGigaflops: flops(softmax) / 1e9,
        matmulGigaflops: flops(products) / 1e9,
        flopsRatio: flops(softmax) / flops(products),
      },
    ];
  });
}

/** Each op counts once, however many kernels it took. */
function flopsOfOps(spans: readonly KernelSpan[]): number {
  const ops = new Map(
    spans.flatMap(({ step, op }) => (op ? [[`${step}:${op.index}`, op.flops] as const] : [])),
  );
  return [...ops.values()].reduce((sum, flops) => sum + flops, 0);
}

/** The kernel with the longest total time of the given phases taken together; null where nothing ran. */
export function topKernel(spans: readonly KernelSpan[], phases: readonly string[], steps: number) {
  const [top] = summarizeByName(spans.filter((span) => phases.includes(phaseOf(span))));
  return top ? { name: top.name, share: top.timeShare, instances: top.instances / steps } : null;
}

/** The top kernel, and how many kernels there are, of the forward pass, of both passes and of the whole step, as far as they are there. */
export function topsOfPhases(spans: readonly KernelSpan[], steps: number) {
  const there = phasesOf(spans);
  const groups = [
    ['forward', ['forward']],
    ['forward and backward', ['forward', 'backward']],
    ['whole step', ['forward', 'backward', 'optimizer']],
  ] as const;
  return groups.flatMap(([phase, phases]) => {
    const top = phases.every((each) => there.includes(each)) ? topKernel(spans, phases, steps) : null;
    const kernels =
      spans.filter((span) => (phases as readonly string[]).includes(phaseOf(span))).length / steps;
    return top ? [{ phase, ...top, kernels }] : [];
  });
}
