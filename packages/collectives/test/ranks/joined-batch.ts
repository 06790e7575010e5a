import { type Device, type Tensor, slice } from '@roofline/tensor-core';
import { byteWindows } from '@roofline/transformer';

// A small language model and its batches, of which each rank has its rows.

export const smallModel = {
  vocabularySize: 128,
  contextLength: 8,
  modelDimension: 16,
  feedForwardDimension: 32,
  heads: 2,
};

const rowsPerRank = 2;
const text = 'the quick brown fox jumps over the lazy dog and runs away from it as fast as it can';

/** Windows of a step's joined batch: those of one rank, or all of them for null. */
export function rowsOf(
  step: number,
  of: number | null,
  { size, device }: { readonly size: number; readonly device: Device },
): { ids: Tensor; targets: Tensor } {
  const { contextLength } = smallModel;
  const joined = byteWindows(text, { step, batch: size * rowsPerRank, contextLength, device });
  const rows = (x: Tensor) => (of === null ? x : slice(x, 0, of * rowsPerRank, (of + 1) * rowsPerRank));
  return { ids: rows(joined.ids), targets: rows(joined.targets) };
}
