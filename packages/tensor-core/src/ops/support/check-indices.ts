import { CompileError, ShapeError } from '../../base/errors.ts';
import { apply } from '../../op/apply.ts';
import { defineOp } from '../../op/op.ts';
import type { TypedArray } from '../../base/dtype.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { tracing } from '../../tensor/tracing.ts';
import { toTypedArray } from '../transfer.ts';

/** The valid indices, and words for the error. */
export interface IndexRange {
  readonly op: string;
  /** The name of an index in this op. */
  readonly role: 'id' | 'index' | 'target';
  /** Indices are 0..length - 1. */
  readonly length: number;
  /** What has that length, such as "a table of 4 rows". */
  readonly within: string;
  /** One more valid index. */
  readonly ignored?: number;
}

/** Throws a ShapeError that names the first index out of range and its position. */
export function requireInRange(data: TypedArray, range: IndexRange): void {
  for (let position = 0; position < data.length; position++) {
    const index = Number(data[position]);
    if ((index >= 0 && index < range.length) || index === range.ignored) continue;
    throw outOfRange(index, position, range);
  }
}

export function outOfRange(index: number, position: number, { op, role, within }: IndexRange): ShapeError {
  return new ShapeError(`${op}: ${role} ${index} at position ${position} is outside ${within}.`);
}

let checked: boolean | null = null;

/**
 * Whether ROOFLINE_CHECK_INDICES=1 asks for indices on a GPU to be read back and checked, which waits for the GPU; otherwise
 * an index out of range gives NaN there. Read once.
 */
function checksIndices(): boolean {
  return (checked ??= process.env.ROOFLINE_CHECK_INDICES === '1');
}

/** The check as an op without outputs, which a compiled function runs in place of a read by the host. */
const checkIndicesOp = defineOp<IndexRange>({
  name: 'checkIndices',
  autocast: 'none',
  infer: () => [],
  cuda: {
    kind: 'custom',
    launch() {
      throw new CompileError(
        'compile: ROOFLINE_CHECK_INDICES=1 reads indices back to the host, which no program can; unset it.',
      );
    },
  },
  cpu: {
    kind: 'host',
    checksValues: true,
    run: ([indices], _, range) => requireInRange(indices!.data, range),
  },
});

/** Throws a ShapeError for an index out of range: on a GPU in the checked mode, on the CPU if `onCpu` says so. */
export function checkIndices(indices: Tensor, range: IndexRange, { onCpu }: { onCpu: boolean }): void {
  if (!(indices.device.type === 'cpu' ? onCpu : checksIndices())) return;
  if (tracing.active) apply(checkIndicesOp, [indices], range);
  else requireInRange(toTypedArray(indices), range);
}
