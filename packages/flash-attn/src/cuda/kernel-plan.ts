import { DeviceError } from '@roofline/tensor-core';
import type { KernelProblem } from './kernel-problem.ts';
import { type HopperBackwardPlan, planHopperBackward } from './hopper/hopper-backward-plan.ts';
import { type HopperForwardPlan, planHopperForward } from './hopper/hopper-forward-plan.ts';
import {
  type MmaBackwardPlan,
  type MmaForwardPlan,
  planMmaBackward,
  planMmaForward,
  planMmaTile,
} from './mma/mma-plan.ts';

/** Queries and keys that a block of threads works on at a time, and the shared memory for them. */
export interface Tile {
  readonly queries: number;
  readonly keys: number;
  readonly sharedBytes: number;
}

/** Kernels of flash_simt.cu. */
export interface SimtPlan {
  readonly family: 'simt';
  /** The head dimension as kernels are compiled for it. */
  readonly headDimension: number;
  readonly forward: Tile;
  readonly backward: Tile;
}

export type ForwardPlan = SimtPlan | MmaForwardPlan | HopperForwardPlan;
export type BackwardPlan = SimtPlan | MmaBackwardPlan | HopperBackwardPlan;

/** Tiles that take more leave a multiprocessor with one block at a time, which then hides nothing. */
const goodSharedBytes = 99 * 1024;
const tileSizes = [64, 32, 16] as const;
const headDimensionStep = 16;
const vectorBytes = 16;

/**
 * The kernels that a forward pass runs on: the best of the families that may be taken and that take it. A backward pass
 * may run on those of another family. Throws a DeviceError where a block cannot have as much shared memory as the smallest
 * tiles need: float64 of large head dimensions on small GPUs.
 */
export function planForward(problem: KernelProblem): ForwardPlan {
  const { kernels, tile } = problem;
  if (tile) return planMmaTile(problem, tile);
  return (
    (kernels === 'auto' ? planHopperForward(problem) : null) ??
    (kernels === 'simt' ? null : planMmaForward(problem)) ??
    planSimt(problem)
  );
}

/** Likewise for a backward pass. */
export function planBackward(problem: KernelProblem): BackwardPlan {
  const { kernels } = problem;
  return (
    (kernels === 'auto' ? planHopperBackward(problem) : null) ??
    (kernels === 'simt' ? null : planMmaBackward(problem)) ??
    planSimt(problem)
  );
}

/**
 * Tiles are the largest whose shared memory lets several blocks run on a multiprocessor, and no larger than the longer
 * of the two sequences fills. Throws as `planForward` does.
 */
export function planSimt(problem: KernelProblem): SimtPlan {
  const { dtype, headDimension, queries, keys, maxSharedBytesPerBlock } = problem;
  const padded = Math.ceil(headDimension / headDimensionStep) * headDimensionStep;
  const size = dtype === 'float64' ? 8 : 4;
  const tile = (matricesOfEach: number): Tile => {
    const bytesOf = (length: number) => simtSharedBytes(length, padded, size, matricesOfEach);
    const smallest = tileSizes.at(-1)!;
    const fitting = tileSizes.filter((length) => bytesOf(length) <= goodSharedBytes);
    const useful = fitting.find((length) => length / 2 < Math.max(queries, keys)) ?? smallest;
    const sharedBytes = bytesOf(useful);
    if (sharedBytes > maxSharedBytesPerBlock) {
      throw new DeviceError(
        `flashAttention: ${dtype} with head dimension ${headDimension} takes ${sharedBytes} bytes of shared memory, and ` +
          `this GPU has ${maxSharedBytesPerBlock} for a block; cast() to float32.`,
      );
    }
    return { queries: useful, keys: useful, sharedBytes };
  };
  return { family: 'simt', headDimension: padded, forward: tile(1), backward: tile(2) };
}

/** Tiles of queries and keys, `matricesOfEach` of either, and one of scores; flash_simt.cu pads their rows. */
function simtSharedBytes(
  length: number,
  headDimension: number,
  elementSize: number,
  matricesOfEach: number,
): number {
  const padding = vectorBytes / elementSize;
  const rows = 2 * matricesOfEach * length * (headDimension + padding);
  return elementSize * (rows + length * (length + padding));
}
