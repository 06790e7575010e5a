import { relative } from 'node:path';
import {
  formatShape,
  type Allocation,
  type DType,
  type SavedForBackward,
  type Shape,
  type StackFrame,
} from '@roofline/tensor-core';
import type { LargeAllocation, MemoryShare } from './result.ts';

const FRAMES = 8;
/** Shares below the first ones are reported as one. */
const SHARES = 8;

/** `layers.3 > attn > attention.softmax`: the ranges below the phase. */
function describeRange(range: readonly string[], phase: string | null): string {
  return range.filter((name) => name !== phase).join(' > ');
}

/** What an allocation is for, the same for all layers. */
export function purposeOf({ range, phase, op, kind }: Allocation): string {
  const path = describeRange(range, phase).replaceAll(/\.\d+(?= |$)/g, '.*');
  const what = kind === 'workspace' ? `${op ?? 'library'} workspace` : (op ?? 'tensor');
  return [phase, path, what].filter(Boolean).join(' · ');
}

function describeTensor(dtype: DType | null, shape: Shape | null): string {
  return dtype && shape ? `${dtype} ${formatShape(shape)}` : '';
}

export function describeStack(stack: readonly StackFrame[]): string[] {
  return stack.slice(0, FRAMES).map(({ name, file, line }) => `${name} (${shorten(file)}:${line})`);
}

function shorten(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
}

export function describeLarge(allocation: Allocation): LargeAllocation {
  const { op, kind, range, phase, bytes, dtype, shape, stack } = allocation;
  return {
    op: op ?? (kind === 'workspace' ? 'library' : 'tensor'),
    range: describeRange(range, phase),
    bytes,
    tensor: kind === 'workspace' ? 'workspace' : describeTensor(dtype, shape),
    phase,
    stack: describeStack(stack),
  };
}

export function describeSaved({ op, range, byteLength, dtype, shape }: SavedForBackward) {
  return {
    op,
    range: describeRange(range, 'forward'),
    bytes: byteLength,
    tensor: describeTensor(dtype, shape),
  };
}

/** Allocations by their purpose, the largest first and the last of them all the rest. */
export function sharesOf(named: readonly { what: string; bytes: number }[]): MemoryShare[] {
  const shares = [...Map.groupBy(named, ({ what }) => what)]
    .map(([what, group]) => ({ what, bytes: sum(group), count: group.length }))
    .sort((a, b) => b.bytes - a.bytes);
  const rest = shares.slice(SHARES);
  if (rest.length < 2) return shares;
  const count = rest.reduce((total, share) => total + share.count, 0);
  return [...shares.slice(0, SHARES), { what: `${rest.length} smaller purposes`, bytes: sum(rest), count }];
}

export function sum(items: readonly { bytes: number }[]): number {
  return items.reduce((total, { bytes }) => total + bytes, 0);
}
