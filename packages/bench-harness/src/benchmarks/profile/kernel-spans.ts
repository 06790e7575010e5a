import { phaseNames } from '../e2e/result.ts';
import type { PackedProfile } from './packed-profile.ts';
import type { PhaseChoice } from './parameters.ts';

/** An opening of a range; `step` and `index` distinguish it from others of its name. */
export interface RangeOpening {
  readonly name: string;
  readonly step: number;
  readonly index: number;
}

/** The op that launched a kernel. */
export interface KernelOp {
  readonly name: string;
  /** Distinguishes it from the other ops of its step. */
  readonly index: number;
  readonly dtype: string;
  readonly isMatrixProduct: boolean;
  readonly flops: number;
  readonly allocatedBytes: number;
}

/** A kernel of one step with all that is known of it. Times are microseconds since the step began. */
export interface KernelSpan {
  readonly name: string;
  readonly kind: string;
  readonly stream: string;
  readonly step: number;
  readonly startUs: number;
  readonly durationUs: number;
  /** Null for what no op queued, such as copies to the host. */
  readonly op: KernelOp | null;
  /** The ranges around it, outermost first. */
  readonly ranges: readonly RangeOpening[];
  /** The kernel's part of its op's work; null for helpers of the op's main kernel, whose part is not known. */
  readonly work: { readonly flops: number; readonly bytes: number } | null;
}

/** What is known of a kernel, whichever side measured it. */
export type TimedKernel = Pick<KernelSpan, 'name' | 'step' | 'durationUs' | 'ranges'>;

/** Puts the lists of all steps together again, in the order in which the kernels ran. */
export function kernelSpans(steps: readonly PackedProfile[]): KernelSpan[] {
  return steps.flatMap((profile, step) => spansOfStep(profile, step));
}

function spansOfStep({ strings, ranges, ops, kernels }: PackedProfile, step: number): KernelSpan[] {
  const paths = pathsOf(ranges, strings, step);
  const shares = workShares(kernels);
  return kernels.name.map((name, i): KernelSpan => {
    const op = kernels.op[i]!;
    return {
      name: strings[name]!,
      kind: strings[kernels.kind[i]!]!,
      stream: strings[kernels.stream[i]!]!,
      step,
      startUs: kernels.startUs[i]!,
      durationUs: kernels.durationUs[i]!,
      op:
        op < 0
          ? null
          : {
              name: strings[ops.name[op]!]!,
              index: op,
              dtype: strings[ops.dtype[op]!]!,
              isMatrixProduct: ops.isMatrixProduct[op] === 1,
              flops: ops.flops[op]!,
              allocatedBytes: ops.allocatedBytes[op]!,
            },
      ranges: op < 0 ? [] : (paths[ops.range[op]!] ?? []),
      work:
        shares[i] === 0
          ? null
          : { flops: shares[i]! * ops.flops[op]!, bytes: shares[i]! * ops.bytesMoved[op]! },
    };
  });
}

/** The openings around each range and itself; those around a range come before it. */
function pathsOf(
  { name, parent }: PackedProfile['ranges'],
  strings: readonly string[],
  step: number,
): RangeOpening[][] {
  const paths: RangeOpening[][] = [];
  for (let index = 0; index < name.length; index++) {
    const opening = { name: strings[name[index]!]!, step, index };
    paths.push([...(paths[parent[index]!] ?? []), opening]);
  }
  return paths;
}

/**
 * The share of its op's work that each kernel carries: the op's longest kernel, and others of its name by their
 * time, as where an op over many tensors takes several launches. No kernel carries it where the longest takes less
 * than half of the op's time: they share the work, in unknown parts.
 */
function workShares({ op, name, durationUs }: PackedProfile['kernels']): number[] {
  const longest = new Map<number, number>();
  const opUs = new Map<number, number>();
  for (let i = 0; i < op.length; i++) {
    const best = longest.get(op[i]!);
    if (best === undefined || durationUs[i]! > durationUs[best]!) longest.set(op[i]!, i);
    opUs.set(op[i]!, (opUs.get(op[i]!) ?? 0) + durationUs[i]!);
  }
  const isLongest = (i: number) => op[i]! >= 0 && name[i] === name[longest.get(op[i]!)!];
  const longestUs = new Map<number, number>();
  for (let i = 0; i < op.length; i++) {
    if (isLongest(i)) longestUs.set(op[i]!, (longestUs.get(op[i]!) ?? 0) + durationUs[i]!);
  }
  return op.map((each, i) => {
    const carriedUs = isLongest(i) ? longestUs.get(each)! : 0;
    return carriedUs >= opUs.get(each)! / 2 && carriedUs > 0 ? durationUs[i]! / carriedUs : 0;
  });
}

/** What is reported of a profile. */
export interface Selection {
  readonly phase: PhaseChoice;
  readonly range: string | null;
}

/** The kernels of the phase, inside ranges that the pattern matches. */
export function selectSpans(spans: readonly KernelSpan[], { phase, range }: Selection): KernelSpan[] {
  const matches = range === null ? null : globToRegExp(range);
  return spans.filter(
    (span) =>
      (phase === 'all' || phaseOf(span) === phase) &&
      (matches === null || span.ranges.some(({ name }) => matches.test(name))),
  );
}

/** The outermost range, which is the phase; `other` for work outside of any. */
export function phaseOf({ ranges }: Pick<KernelSpan, 'ranges'>): string {
  return ranges[0]?.name ?? 'other';
}

/** In the order of a step, then as they come: the graph of a compiled step may begin with what belongs to its optimizer. */
export function phasesOf(kernels: readonly Pick<KernelSpan, 'ranges'>[]): string[] {
  const found = new Set(kernels.map(phaseOf));
  return [...new Set([...phaseNames.filter((name) => found.has(name)), ...found])];
}

/** Without those inside another of their name, which are part of it. */
export function outermostOfEachName(ranges: readonly RangeOpening[]): RangeOpening[] {
  return ranges.filter(({ name }, place) => ranges.findIndex((each) => each.name === name) === place);
}

/** `*` stands for any text, line breaks too, `?` for one character. */
function globToRegExp(glob: string): RegExp {
  const escaped = glob.replace(/[.+^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*').replaceAll('?', '.')}$`, 'su');
}

export function isMatrixProduct({ op }: KernelSpan): boolean {
  return op?.isMatrixProduct ?? false;
}

export function totalUs(spans: readonly Pick<KernelSpan, 'durationUs'>[]): number {
  return spans.reduce((sum, { durationUs }) => sum + durationUs, 0);
}

/** Microseconds in which at least one of the kernels ran. The spans are of one step. */
export function busyUs(spans: readonly Pick<KernelSpan, 'startUs' | 'durationUs'>[]): number {
  let busy = 0;
  let end = -Infinity;
  for (const { startUs, durationUs } of [...spans].sort((a, b) => a.startUs - b.startUs)) {
    busy += Math.max(0, startUs + durationUs - Math.max(startUs, end));
    end = Math.max(end, startUs + durationUs);
  }
  return busy;
}
