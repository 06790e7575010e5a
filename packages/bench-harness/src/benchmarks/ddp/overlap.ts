import { busyUs, kernelSpans, type KernelSpan } from '../profile/kernel-spans.ts';
import type { ProfiledPass } from './result.ts';

/** The stream that represents Gloo's threads. */
export const glooStream = 'gloo';

/** How much of a pass's communication ran while something was calculated. */
export interface Overlap {
  /** Microseconds in which communication ran. */
  readonly communicationUs: number;
  /** Those of them in which computation ran too. */
  readonly hiddenUs: number;
}

type Interval = Pick<KernelSpan, 'startUs' | 'durationUs'>;

/**
 * The kernels of a pass, those of communication apart: Gloo's works, or all that runs on streams whose kernels all communicate. A
 * CUDA graph's are on the stream that it was launched on, those of ops too: there kernels that communicate alone count.
 */
export function splitPass({ profile }: Extract<ProfiledPass, { status: 'ok' }>): {
  readonly computation: readonly KernelSpan[];
  readonly communication: readonly KernelSpan[];
} {
  const spans = kernelSpans([profile]);
  const kernels = spans.filter(({ kind }) => kind === 'kernel');
  const mixed = new Set(kernels.filter((span) => !isCommunication(span)).map(({ stream }) => stream));
  const streams = new Set(spans.filter(isCommunication).map(({ stream }) => stream));
  const { true: communication = [], false: computation = [] } = Object.groupBy(spans, (span) =>
    String(isCommunication(span) || (streams.has(span.stream) && !mixed.has(span.stream))),
  );
  return { computation, communication };
}

/**
 * NCCL's kernels are named ncclDevKernel_AllReduce_... or, before 2.19, ncclKernel_AllReduce_...; two_shot_all_reduce is
 * that of collectives, in the memory of all ranks, which they also copy from.
 */
function isCommunication({ name, stream }: KernelSpan): boolean {
  return stream === glooStream || /\bnccl\w*Kernel|\btwo_shot_all_reduce\b|\[CUDA memcpy PtoP\]/.test(name);
}

/** What both have in common is what each takes, less what they take together. */
export function overlapOf(computation: readonly Interval[], communication: readonly Interval[]): Overlap {
  const communicationUs = busyUs(communication);
  const togetherUs = busyUs([...computation, ...communication]);
  // The difference of sums may round to less than nothing.
  const hiddenUs = Math.max(0, busyUs(computation) + communicationUs - togetherUs);
  return { communicationUs, hiddenUs };
}
