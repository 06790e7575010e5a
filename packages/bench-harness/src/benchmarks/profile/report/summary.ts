import { formatDuration, formatPercent, formatRatio } from '@roofline/reports';
import { stepNames } from '../../e2e/parameters.ts';
import { listSome, valuesInWords } from '../../../report/values-in-words.ts';
import { profiledOf, settingsOf, type Profiled } from '../interpret.ts';
import { phaseOf, totalUs, type KernelSpan, type TimedKernel } from '../kernel-spans.ts';
import type { ProfileCell } from '../parameters.ts';
import type { Profiles } from './profile-table.ts';
import { attentionShares, matmulShares, topKernel } from './shares.ts';
import { stepTimes } from './step-times.ts';

/** A profiled cell, by its name among the others. */
interface NamedProfile extends Profiled {
  readonly name: string;
}

/** The findings over all cells, one sentence each, computed from their records, the most telling first. */
export function profileSummary(measurements: Profiles): string[] {
  const names = stepNames(measurements);
  const profiles = measurements
    .toSorted((a, b) => workOf(a.cell) - workOf(b.cell))
    .flatMap((profile) => {
      const profiled = profiledOf(profile);
      return profiled ? [{ name: names.name(profile.cell), ...profiled }] : [];
    });
  if (profiles.length === 0) return [];
  const where = names.shared && ` (${names.shared})`;
  return [
    ...peerSentence(profiles),
    ...timeSentence(profiles),
    productSentence(profiles),
    ...attentionSentence(profiles),
    ...topSentence('forward', ['forward'], profiles),
    ...topSentence('forward and backward', ['forward', 'backward'], profiles.filter(hasBackward)),
    `Profiled: ${listSome(profiles.map(({ name }) => name))}${where}.`,
  ];
}

/** Where the selection is empty, one sentence a cell, with the names that exist. */
export function emptySelections(profiles: Profiles): string[] {
  const { name } = stepNames(profiles);
  return profiles.flatMap((profile) => {
    const profiled = profiledOf(profile);
    const { phase, range } = settingsOf(profile);
    if (profiled === null || profiled.selected.length > 0 || profiled.spans.length === 0) return [];
    const [phases, ranges] = [new Set(profiled.spans.map(phaseOf)), rangeNames(profiled.spans)];
    const wanted = [
      ...(phase === 'all' ? [] : [`phase \`${phase}\``]),
      ...(range === null ? [] : [`ranges \`${range}\``]),
    ];
    return [
      `No kernel of ${name(profile.cell)} lies in ${wanted.join(', ')}. It has the phases ${[...phases].join(', ')} and the ` +
        `ranges ${ranges.join(', ')}.`,
    ];
  });
}

/** Layers by one name: `layers.*`. */
function rangeNames(spans: readonly KernelSpan[]): string[] {
  return [...new Set(spans.flatMap(({ ranges }) => ranges.map(({ name }) => name.replace(/\.\d+$/, '.*'))))];
}

/** Grows as the FLOPs of the layers do. */
export function workOf({ shape, context, batch }: ProfileCell): number {
  return shape.layers * shape.modelDimension ** 2 * context * batch;
}

function hasBackward({ spans }: Profiled): boolean {
  return spans.some((span) => phaseOf(span) === 'backward');
}

/** Cells that share their top kernel share a clause. */
function topSentence(label: string, phases: readonly string[], profiles: readonly NamedProfile[]): string[] {
  const tops = profiles.flatMap(({ name, spans, result }) => {
    const kernel = topKernel(spans, phases, result.steps.length);
    return kernel ? [{ name, kernel: kernel.name, value: kernel.share }] : [];
  });
  if (tops.length === 0) return [];
  const clauses = [...Map.groupBy(tops, ({ kernel }) => kernel)].map(([kernel, group]) => {
    const share = `\`${kernel}\` with ${valuesInWords(group, formatPercent)}`;
    return group.length === 1 && tops.length > 1 ? `${share} for ${group[0]!.name}` : share;
  });
  return [`The top kernel of ${label}, by its share of the kernel time: ${clauses.join('; ')}.`];
}

/** None where all ran op by op: no plain step has those kernels. */
function timeSentence(profiles: readonly NamedProfile[]): string[] {
  const steps = profiles
    .filter(({ isOpByOp }) => !isOpByOp)
    .map((profile) => ({ name: profile.name, ...stepTimes(profile) }));
  const [first] = steps;
  if (!first) return [];
  const shares = steps.map(({ name, idleShare }) => ({ name, value: idleShare! }));
  const idle = valuesInWords(shares, formatPercent);
  if (steps.length > 1) return [`Of the time of a step that is not profiled the device idles ${idle}.`];
  const name = profiles.length > 1 ? ` (${first.name})` : '';
  return [
    `Kernels run for ${formatDuration(first.busyMs)} of a step of ${formatDuration(first.plainMs)}${name}; the device idles ` +
      `${idle} of it.`,
  ];
}

function productSentence(profiles: readonly NamedProfile[]): string {
  const shares = profiles.map(({ name, spans, result }) => ({
    ...{ name, value: matmulShares(spans, result.steps.length).at(-1)?.matmulShare ?? 0 },
  }));
  return `Matrix products make up ${valuesInWords(shares, formatPercent)} of the kernel time.`;
}

function peerSentence(profiles: readonly NamedProfile[]): string[] {
  const versions = profiles.flatMap(({ peer }) => peer?.profile.torch ?? []);
  if (versions.length === 0) return [];
  const ratios = profiles.flatMap((profile) => {
    const both = kernelsBesidePeer(profile);
    return both ? [{ name: profile.name, value: both.ours / both.theirs }] : [];
  });
  const phrases = valuesInWords(ratios, (ratio) => formatRatio(ratio));
  return [`The kernels of a step take ${phrases} the time of those of PyTorch ${versions[0]} eager.`];
}

/** The time of all kernels of a step and of PyTorch's; null without a peer. */
export function kernelsBesidePeer({ spans, result, peer }: Profiled) {
  if (!peer) return null;
  return {
    ours: kernelMsOf(spans, result.steps),
    theirs: kernelMsOf(peer.kernels, peer.profile.steps),
  };
}

function kernelMsOf(kernels: readonly TimedKernel[], steps: readonly unknown[]): number {
  return totalUs(kernels) / 1000 / steps.length;
}

function attentionSentence(profiles: readonly NamedProfile[]): string[] {
  const shares = profiles.flatMap(({ name, spans, result }) => {
    const forward = attentionShares(spans, result.steps.length).find(({ phase }) => phase === 'forward');
    return forward ? [{ name, ...forward }] : [];
  });
  if (shares.length === 0) return [];
  const phrases = (key: 'timeRatio' | 'flopsRatio') =>
    valuesInWords(
      shares.map((each) => ({ name: each.name, value: each[key] })),
      formatPercent,
    );
  return [
    `Inside attention, forward, softmax takes ${phrases('timeRatio')} of the time of the matrix products, with ` +
      `${phrases('flopsRatio')} of their FLOPs.`,
  ];
}
